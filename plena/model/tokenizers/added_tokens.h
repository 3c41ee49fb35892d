// Tokens that are found in a text before anything else happens to it: `<|im_start|>` and the like.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plena {

struct AddedToken {
  std::string text;
  std::uint32_t id = 0;
  bool single_word = false;  // only between characters that belong to no word
  bool strips_left = false;  // takes the white space before it along
  bool strips_right = false;
};

/// A token, or the text between two.
struct TextSection {
  std::string_view text;
  std::optional<std::uint32_t> token;
};

class AddedTokens {
 public:
  void add(AddedToken token);

  /// The text cut at the tokens in it: the leftmost first, of several there the longest.
  [[nodiscard]] std::vector<TextSection> split(std::string_view text) const;

 private:
  [[nodiscard]] const AddedToken* find_at(std::string_view text, std::size_t at) const;

  // By first byte, the longest first.
  std::array<std::vector<AddedToken>, 256> tokens_;
};

}  // namespace plena
