// Names of number formats: the published ones, and a spelled-out form for every other.
#include "plena/config/data_type.h"

#include <array>
#include <charconv>
#include <optional>
#include <vector>

#include "plena/base/near_miss.h"

namespace plena {

namespace {

constexpr std::uint32_t kDefaultBlock = 8;  // the settings' formats (cli.md)
constexpr std::uint32_t kLargestBlock = 1U << 20;

struct NamedType {
  std::string_view name;
  DataType type;
};

constexpr std::array kNamedTypes = {
    NamedType{"bf16", DataType::plain(kBf16)},
    NamedType{"fp16", DataType::plain(kFp16)},
    NamedType{"fp32", DataType::plain(kFp32)},
    NamedType{"mxfp8_e4m3", DataType::mx(kE4M3, kDefaultBlock)},
    NamedType{"mxfp8_e5m2", DataType::mx(kE5M2, kDefaultBlock)},
    NamedType{"mxfp6_e3m2", DataType::mx(kE3M2, kDefaultBlock)},
    NamedType{"mxfp6_e2m3", DataType::mx(kE2M3, kDefaultBlock)},
    NamedType{"mxfp4_e2m1", DataType::mx(kE2M1, kDefaultBlock)},
    NamedType{"mxint8", DataType::mx(ElementType::integer(8), kDefaultBlock)},
    NamedType{"mxint4", DataType::mx(ElementType::integer(4), kDefaultBlock)},
};

bool drop_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// A decimal number up to `largest` at the front of `text`.
std::optional<std::uint32_t> take_number(std::string_view& text, std::uint32_t largest) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value > largest) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

// `fp(s,e,m)` or `int(w)` at the front of `text`; ranges of widths are check()'s concern.
std::optional<ElementType> take_element(std::string_view& text) {
  constexpr std::uint32_t kWidest = 64;
  if (drop_prefix(text, "int(")) {
    const auto width = take_number(text, kWidest);
    if (!width || !drop_prefix(text, ")")) return std::nullopt;
    return ElementType::integer(static_cast<int>(*width));
  }
  if (!drop_prefix(text, "fp(")) return std::nullopt;
  const auto sign = take_number(text, 1);
  if (!sign || !drop_prefix(text, ",")) return std::nullopt;
  const auto exponent = take_number(text, kWidest);
  if (!exponent || !drop_prefix(text, ",")) return std::nullopt;
  const auto mantissa = take_number(text, kWidest);
  if (!mantissa || !drop_prefix(text, ")")) return std::nullopt;
  return ElementType::fp(static_cast<int>(*exponent), static_cast<int>(*mantissa), *sign != 0);
}

// The type in front of a `:blockN`.
std::optional<DataType> parse_base(std::string_view name) {
  for (const auto& named : kNamedTypes) {
    if (named.name == name) return named.type;
  }
  const bool scaled = drop_prefix(name, "mx(");
  const auto element = take_element(name);
  if (!element || name != (scaled ? ")" : "")) return std::nullopt;
  return scaled ? DataType::mx(*element, kDefaultBlock) : DataType::plain(*element);
}

std::string spell(const ElementType& element) {
  if (element.kind == ElementType::Kind::Int) return fmt::format("int({})", element.int_width);
  return fmt::format("fp({},{},{})", element.sign ? 1 : 0, element.exponent, element.mantissa);
}

tl::unexpected<Error> unknown_type(std::string_view name) {
  std::vector<std::string_view> names;
  std::string known;
  for (const auto& named : kNamedTypes) {
    names.push_back(named.name);
    known += fmt::format("{} ", named.name);
  }
  std::string hint = did_you_mean(name, names);
  if (hint.empty()) hint = known + "or fp(sign,exponent,mantissa), int(width), mx(...)";
  return fail_with_hint(ErrorCode::Settings, fmt::format("unknown data type '{}'", name),
                        std::move(hint));
}

}  // namespace

Result<DataType> DataType::parse(std::string_view name) {
  const std::size_t colon = name.find(':');
  auto type = parse_base(name.substr(0, colon));
  if (!type) return unknown_type(name);
  if (colon == std::string_view::npos) return *type;
  if (!type->is_mx()) {
    return fail_with_hint(ErrorCode::Settings,
                          fmt::format("'{}' has no scales, so it takes no :block", name),
                          "only mx types come in blocks");
  }
  std::string_view suffix = name.substr(colon + 1);
  const auto block =
      drop_prefix(suffix, "block") ? take_number(suffix, kLargestBlock) : std::nullopt;
  if (!block || *block == 0 || !suffix.empty()) {
    return fail_with_hint(ErrorCode::Settings, fmt::format("'{}' is no data type", name),
                          fmt::format("a block is written :blockN, N from 1 to {}", kLargestBlock));
  }
  type->block = *block;
  return *type;
}

std::string DataType::name() const {
  const std::string suffix =
      is_mx() && block != kDefaultBlock ? fmt::format(":block{}", block) : std::string();
  for (const auto& named : kNamedTypes) {
    if (named.type.element == element && named.type.is_mx() == is_mx()) {
      return std::string(named.name) + suffix;
    }
  }
  return (is_mx() ? fmt::format("mx({})", spell(element)) : spell(element)) + suffix;
}

}  // namespace plena
