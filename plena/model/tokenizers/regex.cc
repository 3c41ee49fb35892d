#include "plena/model/tokenizers/regex.h"

#include <array>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "plena/model/tokenizers/unicode.h"

namespace plena {

namespace {

constexpr std::uint32_t kMostBacktracks = 1'000'000;

}  // namespace

Result<Regex> Regex::compile(const std::string& pattern) {
  int error = 0;
  PCRE2_SIZE place = 0;
  pcre2_code* code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &place, nullptr);
  if (code == nullptr) {
    std::array<PCRE2_UCHAR, 256> message{};
    pcre2_get_error_message(error, message.data(), message.size());
    return fail(ErrorCode::Format, "the pattern {} is wrong at {}: {}", pattern, place,
                reinterpret_cast<const char*>(message.data()));
  }
  return Regex(std::shared_ptr<const void>(code, [](const void* p) {
    pcre2_code_free(static_cast<pcre2_code*>(const_cast<void*>(p)));
  }));
}

std::vector<Regex::Match> Regex::find_all(std::string_view text) const {
  const auto* code = static_cast<const pcre2_code*>(code_.get());
  const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> match(
      pcre2_match_data_create(1, nullptr), &pcre2_match_data_free);
  const std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)> context(
      pcre2_match_context_create(nullptr), &pcre2_match_context_free);
  pcre2_set_match_limit(context.get(), kMostBacktracks);
  std::vector<Match> matches;
  std::size_t at = 0;
  while (at < text.size()) {
    // 0: more groups than the one that is asked for.
    const int found = pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                                  at == 0 ? 0 : PCRE2_NO_UTF_CHECK, match.get(), context.get());
    if (found < 0) break;
    const PCRE2_SIZE* place = pcre2_get_ovector_pointer(match.get());
    if (place[1] > place[0]) {
      matches.push_back({place[0], place[1]});
      at = place[1];
    } else {
      at = place[1] + character_bytes(text.substr(place[1]));
    }
  }
  return matches;
}

}  // namespace plena
