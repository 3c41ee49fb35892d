#include "plena/observe/memory_spec.h"

#include <charconv>

namespace plena {

namespace {

constexpr std::string_view kSpecForm =
    "MEM=FILE[@ADDR[:COUNT]] with MEM one of hbm, vram, mram, fp, int";

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Decimal or 0x, all of the text, at most 64 bits.
std::optional<std::uint64_t> parse_number(std::string_view text) {
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    base = 16;
    text.remove_prefix(2);
  }
  std::uint64_t value = 0;
  const char* begin = text.data();
  const char* end = begin + text.size();
  const auto [stop, error] = std::from_chars(begin, end, value, base);
  if (error != std::errc{} || stop != end || text.empty()) return std::nullopt;
  return value;
}

// Where the `@` stands that starts an address, or npos.
std::size_t find_address(std::string_view file) {
  const std::size_t at = file.rfind('@');
  if (at == std::string_view::npos || at + 1 >= file.size()) return at;
  const std::string_view rest = file.substr(at + 1);
  const bool numeric = is_digit(rest[0]) || rest[0] == ':';
  return numeric && rest.find('/') == std::string_view::npos ? at : std::string_view::npos;
}

tl::unexpected<Error> malformed(std::string_view text, std::string_view what) {
  return fail_with_hint(ErrorCode::Usage, fmt::format("'{}': {}", text, what),
                        std::string(kSpecForm));
}

}  // namespace

Result<MemorySpec> parse_memory_spec(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) return malformed(text, "no MEM= in front of the file");
  const auto memory = parse_memory_kind(text.substr(0, equals));
  if (!memory)
    return malformed(text, fmt::format("there is no memory '{}'", text.substr(0, equals)));

  MemorySpec spec{*memory, {}, 0, std::nullopt};
  std::string_view file = text.substr(equals + 1);
  if (const std::size_t at = find_address(file); at != std::string_view::npos) {
    std::string_view address = file.substr(at + 1);
    file = file.substr(0, at);
    if (const std::size_t colon = address.find(':'); colon != std::string_view::npos) {
      spec.count = parse_number(address.substr(colon + 1));
      if (!spec.count)
        return malformed(text, fmt::format("'{}' is not a count", address.substr(colon + 1)));
      address = address.substr(0, colon);
    }
    const auto first = parse_number(address);
    if (!first) return malformed(text, fmt::format("'{}' is not an address", address));
    spec.first = *first;
  }
  if (file.empty()) return malformed(text, "the file's name is missing");
  spec.file = file;
  return spec;
}

Result<MemorySpec> parse_memory_source(std::string_view text) {
  auto spec = parse_memory_spec(text);
  if (spec && spec->count) {
    return fail_with_hint(ErrorCode::Usage, fmt::format("'{}': a count is for dumps only", text),
                          "the file says how many elements there are");
  }
  return spec;
}

}  // namespace plena
