// Reads a case folder. A case is input like any other: what is malformed is an error with a place.
#include <filesystem>

#include <nlohmann/json.hpp>

#include "plena/asm/mem_file.h"
#include "plena/cases/case.h"
#include "plena/cases/json_input.h"

namespace plena {

namespace {

using nlohmann::json;

Result<Bytes> read_optional(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return Bytes{};
  return read_file(path);
}

Result<std::vector<CaseSegment>> read_segments(const json& list, const Bytes& blob,
                                               const Machine& shape, const std::string& blob_path) {
  std::vector<CaseSegment> segments;
  for (const json& item : list) {
    const auto name = item.at("memory").get<std::string>();
    const auto memory = parse_memory_kind(name);
    if (!memory)
      return fail(ErrorCode::Format, "unknown memory '{}' in a segment of {}", name, blob_path);
    const auto count = item.at("count").get<std::uint64_t>();
    const auto offset = item.at("offset").get<std::uint64_t>();
    const std::uint64_t unit = shape.file_element_bytes(*memory);
    if (offset > blob.size() || count > (blob.size() - offset) / unit) {
      return fail(ErrorCode::Format,
                  "{} has {} bytes, but a segment of {} needs {} elements from byte {}", blob_path,
                  blob.size(), name, count, offset);
    }
    const auto begin = blob.begin() + static_cast<std::ptrdiff_t>(offset);
    segments.push_back({*memory, item.at("addr").get<std::uint64_t>(),
                        Bytes(begin, begin + static_cast<std::ptrdiff_t>(count * unit))});
  }
  return segments;
}

CaseRegisters read_registers(const json& regs) {
  CaseRegisters out;
  out.gp = regs.at("gp").get<std::vector<std::uint32_t>>();
  out.f = regs.at("f").get<std::vector<std::uint32_t>>();
  for (const json& text : regs.at("a"))
    out.a.push_back(std::stoull(text.get<std::string>(), nullptr, 16));
  out.scale = regs.at("scale").get<std::uint32_t>();
  out.stride = regs.at("stride").get<std::uint32_t>();
  out.v_mask = regs.at("v_mask").get<std::uint32_t>();
  out.retired = regs.at("retired").get<std::uint64_t>();
  return out;
}

void read_expectation(const json& doc, Case& out) {
  const json& expected = doc.at("expected");
  if (expected.is_object()) {
    out.expected_trap = expected.at("trap").get<std::string>();
    out.expected_pc = expected.at("pc").get<std::uint64_t>();
  }
  out.breaks = doc.at("breaks").get<std::vector<std::uint64_t>>();
  out.continue_after_break = doc.at("on_break").get<std::string>() == "continue";
}

}  // namespace

bool is_case_folder(const std::string& folder) {
  std::error_code ignored;
  return std::filesystem::exists(path_in(folder, "case.json"), ignored);
}

Result<Case> load_case(const std::string& folder) {
  const std::string path = path_in(folder, "case.json");
  auto text = read_text(path);
  if (!text) return forward_error(text);
  return with_json_errors(path, [&]() -> Result<Case> {
    const json doc = json::parse(*text);
    Case out;
    out.name = doc.at("name").get<std::string>();
    out.description = doc.value("description", "");
    auto settings = load_settings(path_in(folder, doc.at("settings").get<std::string>()));
    if (!settings) return forward_error(settings);
    out.settings = settings->settings;
    auto dialect = Dialect::parse(doc.at("isa").get<std::string>());
    if (!dialect) return forward_error(dialect);
    out.dialect = *dialect;
    read_expectation(doc, out);

    auto words = read_mem_file(path_in(folder, "program.mem"));
    if (!words) return forward_error(words);
    out.words = std::move(*words);
    out.assembly_matches = doc.at("asm_matches").get<bool>();
    if (out.assembly_matches) {
      auto assembly = read_text(path_in(folder, "program.asm"));
      if (!assembly) return forward_error(assembly);
      out.assembly = std::move(*assembly);
    }

    const auto shape = Machine::create(out.settings, out.dialect);
    if (!shape) return tl::unexpected(shape.error());
    const auto segments = [&](const char* key,
                              const char* file) -> Result<std::vector<CaseSegment>> {
      auto blob = read_optional(path_in(folder, file));
      if (!blob) return forward_error(blob);
      return read_segments(doc.at(key), *blob, *shape, path_in(folder, file));
    };
    auto initial = segments("init", "init.bin");
    if (!initial) return forward_error(initial);
    auto final = segments("final", "final.bin");
    if (!final) return forward_error(final);
    out.initial = std::move(*initial);
    out.final = std::move(*final);
    out.registers = read_registers(doc.at("regs"));
    return out;
  });
}

}  // namespace plena
