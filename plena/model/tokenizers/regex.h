// Regular expressions with Unicode classes and look-ahead, which tokenizers split text by.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plena/base/error.h"

namespace plena {

class Regex {
 public:
  /// Compiles a pattern of PCRE2's syntax, which has that of tokenizer.json as its subset but for
  /// rarities. An error names the place.
  static Result<Regex> compile(const std::string& pattern);

  struct Match {
    std::size_t begin;
    std::size_t end;
  };

  /// The matches in valid UTF-8 from left to right, none of them empty. A text on which the pattern
  /// gives up (exponential backtracking) has no matches from there on.
  [[nodiscard]] std::vector<Match> find_all(std::string_view text) const;

 private:
  explicit Regex(std::shared_ptr<const void> code) : code_(std::move(code)) {}
  std::shared_ptr<const void> code_;
};

}  // namespace plena
