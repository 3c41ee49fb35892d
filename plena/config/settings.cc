// The rules settings must keep (semantics 1), single overrides, and settings written as text.
// Reading a file is settings_file.cc.
#include "plena/config/settings.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "plena/config/keys.h"

namespace plena {

namespace {

constexpr std::uint32_t kMaskBits = 32;  // V_MASK has one bit for HLEN lanes
// Four times what the 32 bits of an address can name; more could never be used.
constexpr std::uint64_t kMostSramElements = std::uint64_t{1} << 34;

tl::unexpected<Error> broken(std::string message, std::string hint) {
  return fail_with_hint(ErrorCode::Settings, std::move(message), std::move(hint));
}

Status check_ranges(const Settings& settings) {
  for (const auto& key : integer_keys()) {
    const std::uint64_t value = key.get(settings);
    if (value >= key.smallest && value <= key.largest) continue;
    return broken(fmt::format("{} = {} is out of range", key.name, value),
                  fmt::format("{} lies between {} and {}", key.name, key.smallest, key.largest));
  }
  return {};
}

std::uint32_t largest_divisor(std::uint32_t number, std::uint32_t at_most) {
  std::uint32_t divisor = std::min(number, at_most);
  while (number % divisor != 0) --divisor;
  return divisor;
}

// `small` divides `large`; the hint names the nearest values of either that would do.
Status check_divides(std::string_view small_name, std::uint32_t small, std::string_view large_name,
                     std::uint32_t large) {
  if (large % small == 0) return {};
  const std::uint32_t above = (large / small + 1) * small;
  return broken(
      fmt::format("{} = {} does not divide {} = {}", small_name, small, large_name, large),
      fmt::format(
          "BLEN divides HLEN, HLEN divides MLEN, MLEN divides VLEN; {} = {} or {} = {} does",
          small_name, largest_divisor(large, small), large_name, above));
}

Status check_tiles(const Settings& s) {
  if (auto ok = check_divides("BLEN", s.blen, "HLEN", s.hlen); !ok) return ok;
  if (auto ok = check_divides("HLEN", s.hlen, "MLEN", s.mlen); !ok) return ok;
  if (auto ok = check_divides("MLEN", s.mlen, "VLEN", s.vlen); !ok) return ok;
  if (s.vlen / s.hlen > kMaskBits) {
    return broken(fmt::format("VLEN/HLEN = {}/{} = {} exceeds the 32 bits of V_MASK", s.vlen,
                              s.hlen, s.vlen / s.hlen),
                  fmt::format("HLEN of at least {}, or VLEN of at most {}",
                              (s.vlen + kMaskBits - 1) / kMaskBits, kMaskBits * s.hlen));
  }
  if (s.hbm_m_prefetch_amount % s.mlen != 0) {
    return broken(fmt::format("HBM_M_Prefetch_Amount = {} is not a multiple of MLEN = {}",
                              s.hbm_m_prefetch_amount, s.mlen),
                  fmt::format("{} loads one tile, k x {} loads k tiles", s.mlen, s.mlen));
  }
  return {};
}

Status check_sram(std::string_view name, std::uint64_t rows, std::uint32_t row_length) {
  if (rows <= kMostSramElements / row_length) return {};
  return broken(fmt::format("{} = {} rows of {} are more elements than addresses can name", name,
                            rows, row_length),
                fmt::format("at most {} rows", kMostSramElements / row_length));
}

bool computable(const DataType& type) {
  const auto& e = type.element;
  return !type.is_mx() && e.kind == ElementType::Kind::Fp && e.sign && e.exponent >= 2 &&
         e.exponent <= 8 && e.mantissa >= 1 && e.mantissa <= 23;
}

bool storable(const DataType& type) {
  const auto& e = type.element;
  if (e.kind == ElementType::Kind::Int) return e.int_width >= 2 && e.int_width <= 32;
  return e.exponent >= 1 && e.exponent <= 8 && e.mantissa <= 23;
}

Status check_types(const Settings& settings) {
  for (const auto& key : type_keys()) {
    const DataType& type = settings.*key.member;
    if (key.computes && !computable(type)) {
      return broken(
          fmt::format("{} = {} is not a format instructions compute in", key.name, type.name()),
          "a plain signed Fp with 2 to 8 exponent and 1 to 23 mantissa bits, such as bf16");
    }
    if (!key.computes && !storable(type)) {
      return broken(fmt::format("{} = {} is not a format HBM can hold", key.name, type.name()),
                    "Fp with 1 to 8 exponent and 0 to 23 mantissa bits, or Int of 2 to 32 bits");
    }
  }
  return {};
}

// `128`, `0x80`, `16GiB`: nothing when it is no such number or exceeds 64 bits.
std::optional<std::uint64_t> parse_size(std::string_view text) {
  const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  if (hexadecimal) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, hexadecimal ? 16 : 10);
  if (error != std::errc()) return std::nullopt;
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  unsigned shift = 0;
  if (unit == "KiB") {
    shift = 10;
  } else if (unit == "MiB") {
    shift = 20;
  } else if (unit == "GiB") {
    shift = 30;
  } else if (unit == "TiB") {
    shift = 40;
  } else if (!unit.empty()) {
    return std::nullopt;
  }
  if (value > (UINT64_MAX >> shift)) return std::nullopt;
  return value << shift;
}

Result<std::uint64_t> integer_value(std::string_view key, std::string_view text) {
  const auto value = parse_size(text);
  if (value && *value <= INT64_MAX) return *value;
  return broken(fmt::format("{}={}: not a whole number", key, text),
                "a number from 0, with KiB, MiB, GiB or TiB behind it if you like");
}

Status set_type(Settings& settings, std::string_view key, std::string_view text) {
  auto type = DataType::parse(text);
  if (!type) return forward_error(type);
  if (const TypeKey* row = find_type_key(key)) settings.*row->member = *type;
  return {};
}

Status set_integer(Settings& settings, const IntegerKey& key, std::string_view text) {
  const auto value = integer_value(key.name, text);
  if (!value) return tl::unexpected(value.error());
  if (!key.fits(*value)) {
    return broken(fmt::format("{} = {} is out of range", key.name, *value),
                  fmt::format("{} lies between {} and {}", key.name, key.smallest, key.largest));
  }
  key.set(settings, *value);
  if (key.narrow == &Settings::dc_en) resolve_latency(settings);
  return {};
}

std::string element_table(const ElementType& element) {
  if (element.kind == ElementType::Kind::Int) {
    return fmt::format("type = \"Int\"\nwidth = {}\n", element.int_width);
  }
  return fmt::format("type = \"Fp\"\nsign = {}\nexponent = {}\nmantissa = {}\n", element.sign,
                     element.exponent, element.mantissa);
}

// SCALAR_FP is written without a format, as the PLENA tools expect it.
std::string type_table(std::string_view key, const DataType& type) {
  const std::string path = fmt::format("TRANSACTIONAL.PRECISION.{}", key);
  if (key == "SCALAR_FP" && !type.is_mx()) {
    return fmt::format("[{}]\n{}\n", path, element_table(type.element));
  }
  if (!type.is_mx()) {
    return fmt::format("[{0}]\nformat = \"Plain\"\n[{0}.DATA_TYPE]\n{1}\n", path,
                       element_table(type.element));
  }
  return fmt::format("[{0}]\nformat = \"Mx\"\nblock = {1}\n[{0}.ELEM]\n{2}[{0}.SCALE]\n{3}\n", path,
                     type.block, element_table(type.element),
                     element_table(ElementType::fp(8, 0, false)));
}

}  // namespace

Status check(const Settings& settings) {
  if (auto ok = check_ranges(settings); !ok) return ok;
  if (auto ok = check_tiles(settings); !ok) return ok;
  if (auto ok = check_sram("MATRIX_SRAM_SIZE", settings.matrix_sram_size, settings.mlen); !ok) {
    return ok;
  }
  if (auto ok = check_sram("VECTOR_SRAM_SIZE", settings.vector_sram_size, settings.vlen); !ok) {
    return ok;
  }
  return check_types(settings);
}

Status set_value(Settings& settings, std::string_view assignment) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos) {
    return broken(fmt::format("'{}' sets nothing", assignment), "KEY=VALUE, as in MLEN=128");
  }
  const std::string_view key = assignment.substr(0, equals);
  const std::string_view text = assignment.substr(equals + 1);
  if (const IntegerKey* row = find_integer_key(key)) return set_integer(settings, *row, text);
  if (is_inert_integer_key(key)) {
    const auto value = integer_value(key, text);
    if (!value) return tl::unexpected(value.error());
    settings.inert[std::string(key)] = *value;
    return {};
  }
  if (find_type_key(key) != nullptr || key == kInertTypeKey) return set_type(settings, key, text);
  return broken(fmt::format("unknown setting '{}'", key), suggest_key(key));
}

std::vector<std::pair<std::string, std::int64_t>> integer_symbols(const Settings& settings) {
  std::vector<std::pair<std::string, std::int64_t>> symbols;
  for (const auto& key : integer_keys()) {
    symbols.emplace_back(key.name, static_cast<std::int64_t>(key.get(settings)));
  }
  for (const auto& [name, value] : settings.inert) {
    symbols.emplace_back(name, static_cast<std::int64_t>(value));
  }
  return symbols;
}

std::string to_toml(const Settings& settings) {
  std::string text = "[MODE]\nactive = \"transactional\"\n\n";
  for (const auto& [name, value] : integer_symbols(settings)) {
    text += fmt::format("[TRANSACTIONAL.CONFIG.{}]\nvalue = {}\n\n", name, value);
  }
  for (const auto& key : type_keys()) text += type_table(key.name, settings.*key.member);
  for (const auto& [name, columns] : settings.latency_columns) {
    text += fmt::format("[TRANSACTIONAL.LATENCY.{}]\ndc_lib_en = {}\ndc_lib_dis = {}\n\n", name,
                        columns.dc_lib_en, columns.dc_lib_dis);
  }
  return text;
}

}  // namespace plena
