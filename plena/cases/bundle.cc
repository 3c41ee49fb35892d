#include "plena/cases/bundle.h"

#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <stdexcept>

#include <zstd.h>

#include "plena/base/npy.h"
#include "plena/cases/emulator_dump.h"
#include "plena/cases/emulator_run.h"
#include "plena/cases/json_input.h"
#include "plena/numerics/float_format.h"

namespace plena {

namespace {

using nlohmann::json;

// ------------------------------------------------------------ files, plain or packed

Result<Bytes> unpack_zstd(const Bytes& packed, const std::string& path) {
  const auto failed = [&](std::string_view why) {
    return fail(ErrorCode::Format, "{}: {}", path, why);
  };
  ZSTD_DStream* stream = ZSTD_createDStream();
  Bytes out;
  ZSTD_inBuffer in{packed.data(), packed.size(), 0};
  std::array<std::uint8_t, 1 << 16> chunk{};
  std::size_t left = 1;
  while (in.pos < in.size || left == 0) {
    ZSTD_outBuffer to{chunk.data(), chunk.size(), 0};
    left = ZSTD_decompressStream(stream, &to, &in);
    if (ZSTD_isError(left) != 0) break;
    out.insert(out.end(), chunk.begin(), chunk.begin() + static_cast<std::ptrdiff_t>(to.pos));
    if (left == 0 || (in.pos == in.size && to.pos < to.size)) break;
  }
  ZSTD_freeDStream(stream);
  if (ZSTD_isError(left) != 0) return failed(ZSTD_getErrorName(left));
  if (left != 0) return failed("the compressed data is truncated");
  return out;
}

Result<Bytes> read_maybe_packed(const std::string& path) {
  auto bytes = read_file(path);
  if (!bytes || !path.ends_with(".zst")) return bytes;
  return unpack_zstd(*bytes, path);
}

Result<Bytes> read_input(const std::string& folder, const json& files, const char* key) {
  if (!files.contains(key) || files.at(key).is_null()) return Bytes{};
  return read_maybe_packed(path_in(folder, files.at(key).get<std::string>()));
}

// ------------------------------------------------------------ parts of bundle.json

// Python writes a bare NaN, which JSON does not have; no key that is read here holds one.
std::string without_nan(std::string text) {
  constexpr std::string_view kNan = ": NaN";
  for (std::size_t at = 0; (at = text.find(kNan, at)) != std::string::npos;)
    text.replace(at, kNan.size(), ": null");
  return text;
}

Result<Settings> read_settings(const std::string& folder, const json& doc) {
  auto loaded = load_settings(path_in(folder, doc.at("files").at("settings").get<std::string>()),
                              "transactional");
  if (!loaded) return forward_error(loaded);
  const json& arguments = doc.at("command_line_args");
  for (std::size_t k = 0; k + 1 < arguments.size(); ++k) {
    if (arguments[k] != "--hbm-size") continue;
    const std::string size = "HBM_SIZE=" + arguments[k + 1].get<std::string>();
    if (auto set = set_value(loaded->settings, size); !set) return tl::unexpected(set.error());
  }
  return loaded->settings;
}

// The library turns a negative number into a huge one.
std::uint64_t whole_number(const json& value, const char* name) {
  if (!value.is_number_unsigned()) throw std::out_of_range(name);
  return value.get<std::uint64_t>();
}

std::uint64_t whole_number_at(const json& object, const char* key) {
  return whole_number(object.at(key), key);
}

Result<std::vector<BundleDump>> read_dumps(const std::string& folder, const json& dumps) {
  constexpr std::array kNames = {
      std::pair("vram", MemoryKind::Vram), std::pair("mram", MemoryKind::Mram),
      std::pair("fpsram", MemoryKind::FpMem), std::pair("intsram", MemoryKind::IntMem),
      std::pair("hbm", MemoryKind::Hbm)};
  std::vector<BundleDump> out;
  for (const auto& [name, memory] : kNames) {
    if (!dumps.contains(name)) continue;
    auto bytes = read_maybe_packed(path_in(folder, dumps.at(name).at("file").get<std::string>()));
    if (!bytes) return forward_error(bytes);
    out.push_back(
        {memory, std::move(*bytes), dumps.at(name).value("full_bytes", std::uint64_t{0})});
  }
  return out;
}

std::vector<std::uint64_t> consecutive(std::uint64_t first, std::size_t count) {
  std::vector<std::uint64_t> addresses(count);
  for (std::size_t k = 0; k < count; ++k) addresses[k] = first + k;
  return addresses;
}

// address(r, c) = vram_address + row(r) + (c div block_cols)·block_stride + c mod block_cols
Result<std::vector<std::uint64_t>> block_addresses(const json& golden, std::size_t count) {
  const std::uint64_t rows = whole_number_at(golden, "rows");
  const std::uint64_t cols = whole_number_at(golden, "cols");
  const std::uint64_t block_cols = whole_number_at(golden, "block_cols");
  const std::uint64_t block_stride = whole_number_at(golden, "block_stride");
  const std::uint64_t first = whole_number_at(golden, "vram_address");
  const json& offsets = golden.at("row_offsets");
  if (block_cols == 0 || cols == 0 || count % cols != 0 || count / cols != rows) {
    return fail(ErrorCode::Format, "{} golden values are not {} x {} in blocks of {} columns",
                count, rows, cols, block_cols);
  }
  std::vector<std::uint64_t> addresses;
  for (std::uint64_t r = 0; r < rows; ++r) {
    const std::uint64_t row = offsets.is_array() ? whole_number(offsets.at(r), "row_offsets")
                                                 : r * whole_number_at(golden, "row_stride");
    for (std::uint64_t c = 0; c < cols; ++c) {
      addresses.push_back(first + row + c / block_cols * block_stride + c % block_cols);
    }
  }
  return addresses;
}

Result<std::vector<std::uint64_t>> listed_addresses(const std::string& path) {
  constexpr double kEnd = 0x1p63;
  auto array = read_npy(path);
  if (!array) return forward_error(array);
  std::vector<std::uint64_t> addresses;
  for (const double value : array->to_f64()) {
    if (!(value >= 0 && value < kEnd)) throw std::out_of_range(path + ": an address");
    addresses.push_back(static_cast<std::uint64_t>(value));
  }
  return addresses;
}

// Element addresses of a golden tensor of `count` values.
Result<std::vector<std::uint64_t>> golden_addresses(const std::string& folder, const json& golden,
                                                    const std::string& space, std::size_t count) {
  if (space != "vram")
    return consecutive(whole_number_at(golden, (space + "_address").c_str()), count);
  if (golden.contains("addresses_file"))
    return listed_addresses(path_in(folder, golden.at("addresses_file").get<std::string>()));
  return block_addresses(golden, count);
}

MemoryKind golden_memory(const std::string& space) {
  if (space == "vram") return MemoryKind::Vram;
  return space == "fp" ? MemoryKind::FpMem : MemoryKind::IntMem;
}

Result<GoldenTensor> read_golden(const std::string& folder, const json& golden) {
  GoldenTensor out;
  auto array = read_npy(path_in(folder, golden.at("file").get<std::string>()));
  if (!array) return forward_error(array);
  out.values = array->to_f64();
  const auto space = golden.at("space").get<std::string>();
  out.memory = golden_memory(space);
  auto addresses = golden_addresses(folder, golden, space, out.values.size());
  if (!addresses) return forward_error(addresses);
  out.addresses = std::move(*addresses);
  if (out.addresses.size() != out.values.size()) {
    return fail(ErrorCode::Format, "{}: {} golden values but {} addresses", folder,
                out.values.size(), out.addresses.size());
  }
  out.exact = golden.value("exact", false);
  out.absolute_tolerance = golden.value("atol", 0.0);
  out.relative_tolerance = golden.value("rtol", 0.0);
  out.min_match_percent = golden.value("min_match_percent", 100.0);
  if (golden.contains("recomputed_match_percent")) {
    out.recomputed_match_percent = golden.at("recomputed_match_percent").get<double>();
  }
  return out;
}

Status read_all_golden(const std::string& folder, const json& golden,
                       std::vector<GoldenTensor>& out) {
  if (golden.is_null()) return {};
  const json list = golden.is_array() ? golden : json::array({golden});
  for (const json& item : list) {
    if (item.is_null()) continue;
    auto tensor = read_golden(folder, item);
    if (!tensor) return tl::unexpected(tensor.error());
    out.push_back(std::move(*tensor));
  }
  return {};
}

Status read_inputs(const std::string& folder, const json& files, Bundle& out) {
  const std::array parts = {std::pair("hbm", &out.hbm), std::pair("fp_sram", &out.fp_sram),
                            std::pair("int_sram", &out.int_sram),
                            std::pair("vram_preload", &out.vram)};
  for (const auto& [key, to] : parts) {
    auto bytes = read_input(folder, files, key);
    if (!bytes) return tl::unexpected(bytes.error());
    *to = std::move(*bytes);
  }
  const std::string path = path_in(folder, files.at("program").get<std::string>());
  auto text = read_maybe_packed(path);
  if (!text) return tl::unexpected(text.error());
  out.program.assign(text->begin(), text->end());
  return {};
}

// ------------------------------------------------------------ comparison

bool is_nan(ElementType format, std::uint32_t bits) {
  return std::isnan(decode_fp(format, bits));
}

std::uint32_t element_at(const Bytes& bytes, std::size_t index, std::size_t unit) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, bytes.data() + index * unit, unit);
  return bits;
}

std::optional<ElementType> format_of(const Machine& machine, MemoryKind memory) {
  switch (memory) {
    case MemoryKind::Vram:
      return machine.vector_element();
    case MemoryKind::Mram:
      return machine.settings.matrix_sram_type.element;
    case MemoryKind::FpMem:
      return machine.scalar_element();
    default:
      return std::nullopt;
  }
}

void compare_dump(const BundleDump& dump, const Machine& machine, std::vector<std::string>& lines) {
  auto got = emulator_dump(machine, dump.memory);
  if (got.full_bytes != dump.full_bytes && dump.full_bytes != 0) {
    lines.push_back(fmt::format("{}: the dump has {} bytes, expected {}", memory_name(dump.memory),
                                got.full_bytes, dump.full_bytes));
    return;
  }
  Bytes expected = dump.bytes;
  const std::size_t size = std::max(expected.size(), got.bytes.size());
  expected.resize(size);
  got.bytes.resize(size);
  if (expected == got.bytes) return;
  const std::size_t unit =
      dump.memory == MemoryKind::Hbm
          ? 1
          : machine.file_element_bytes(dump.memory == MemoryKind::Mram ? MemoryKind::Vram
                                                                       : dump.memory);
  const auto format = format_of(machine, dump.memory);
  std::size_t different = 0;
  std::string first;
  for (std::size_t k = 0; k < size / unit; ++k) {
    const std::uint32_t want = element_at(expected, k, unit);
    const std::uint32_t have = element_at(got.bytes, k, unit);
    if (want == have || (format && is_nan(*format, want) && is_nan(*format, have))) continue;
    if (different++ == 0)
      first = fmt::format("the first at {}: expected 0x{:X}, got 0x{:X}", k, want, have);
  }
  if (different != 0) {
    lines.push_back(fmt::format("{}: {} element(s) differ from the dump, {}",
                                memory_name(dump.memory), different, first));
  }
}

double element_value_at(const Machine& machine, MemoryKind memory, std::uint64_t address) {
  auto bytes = machine.read_elements(memory, address, 1);
  if (!bytes) return std::numeric_limits<double>::quiet_NaN();
  std::uint32_t bits = 0;
  std::memcpy(&bits, bytes->data(), bytes->size());
  const auto format = format_of(machine, memory);
  return format ? static_cast<double>(decode_fp(*format, bits)) : static_cast<double>(bits);
}

double as_bf16(double value) {
  return static_cast<double>(bf16_to_f32(f32_to_bf16(static_cast<float>(value))));
}

double match_percent(const GoldenTensor& golden, const Machine& machine) {
  if (golden.values.empty()) return 100;
  std::size_t matches = 0;
  for (std::size_t k = 0; k < golden.values.size(); ++k) {
    const double got = element_value_at(machine, golden.memory, golden.addresses[k]);
    if (golden.exact) {
      matches += got == golden.values[k] ? 1 : 0;
      continue;
    }
    const double want = as_bf16(golden.values[k]);
    const double allowed = golden.absolute_tolerance + golden.relative_tolerance * std::fabs(want);
    matches += std::fabs(want - as_bf16(got)) <= allowed ? 1 : 0;
  }
  return 100.0 * static_cast<double>(matches) / static_cast<double>(golden.values.size());
}

void compare_golden(const GoldenTensor& golden, const Machine& machine,
                    std::vector<std::string>& lines) {
  constexpr double kPercentEpsilon = 1e-6;
  const double percent = match_percent(golden, machine);
  if (golden.recomputed_match_percent) {
    if (std::fabs(percent - *golden.recomputed_match_percent) > kPercentEpsilon) {
      lines.push_back(fmt::format("golden tensor in {}: {:.6f} % match, the dumps give {:.6f} %",
                                  memory_name(golden.memory), percent,
                                  *golden.recomputed_match_percent));
    }
  } else if (percent < golden.min_match_percent) {
    lines.push_back(fmt::format("golden tensor in {}: {:.6f} % match, {} % are wanted",
                                memory_name(golden.memory), percent, golden.min_match_percent));
  }
}

void compare_counts(const Bundle& bundle, const EmulatorRun& run, std::vector<std::string>& lines) {
  const auto one = [&](const char* what, std::uint64_t want, std::uint64_t have) {
    if (want != have)
      lines.push_back(fmt::format("HBM bytes {}: expected {}, got {}", what, want, have));
  };
  one("read", bundle.hbm_read, run.hbm_read);
  one("written", bundle.hbm_written, run.hbm_written);
}

}  // namespace

bool is_bundle_folder(const std::string& folder) {
  std::error_code ignored;
  return std::filesystem::exists(path_in(folder, "bundle.json"), ignored);
}

Result<Bundle> load_bundle(const std::string& folder) {
  const std::string path = path_in(folder, "bundle.json");
  auto text = read_text(path);
  if (!text) return forward_error(text);
  return with_json_errors(path, [&]() -> Result<Bundle> {
    const json doc = json::parse(without_nan(*text));
    Bundle out;
    out.name = doc.at("name").get<std::string>();
    auto settings = read_settings(folder, doc);
    if (!settings) return forward_error(settings);
    out.settings = std::move(*settings);
    if (auto read = read_inputs(folder, doc.at("files"), out); !read)
      return tl::unexpected(read.error());
    auto dumps = read_dumps(folder, doc.at("dumps"));
    if (!dumps) return forward_error(dumps);
    out.dumps = std::move(*dumps);
    if (auto read = read_all_golden(folder, doc.at("golden"), out.golden); !read)
      return tl::unexpected(read.error());
    out.refused = doc.at("emulator_exit").get<int>() != 0;
    if (!out.refused) {
      out.hbm_read = whole_number_at(doc, "emulator_hbm_read");
      out.hbm_written = whole_number_at(doc, "emulator_hbm_written");
    }
    return out;
  });
}

Result<std::vector<std::string>> run_bundle(const Bundle& bundle, const CaseHost& host) {
  auto program = emulator_program(bundle.program, bundle.name);
  if (!program && bundle.refused) return std::vector<std::string>{};
  if (!program) return forward_error(program);
  auto run = run_emulator({.settings = bundle.settings,
                           .program = &*program,
                           .hbm = bundle.hbm,
                           .fp_sram = bundle.fp_sram,
                           .int_sram = bundle.int_sram,
                           .vram = bundle.vram},
                          {.host = host});
  if (!run && bundle.refused) return std::vector<std::string>{};  // an image that does not fit
  if (!run) return forward_error(run);
  std::vector<std::string> lines;
  if (bundle.refused) {
    if (!run->trap)
      lines.emplace_back("expected a trap where the emulator panicked, got a normal end");
    return lines;
  }
  if (run->trap) {
    lines.push_back(fmt::format("trap {} at pc {}: {} ({})", trap_name(run->trap->cause),
                                run->trap->pc, run->trap->values, run->trap->rule));
    return lines;
  }
  for (const BundleDump& dump : bundle.dumps) compare_dump(dump, run->machine, lines);
  for (const GoldenTensor& golden : bundle.golden) compare_golden(golden, run->machine, lines);
  compare_counts(bundle, *run, lines);
  return lines;
}

}  // namespace plena
