// The pieces a tokenizer knows and their ids.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "plena/base/error.h"

namespace plena {

/// The byte a piece `<0xNN>` stands for.
std::optional<char> parse_byte_piece(std::string_view piece);

class Vocabulary {
 public:
  /// Gives `piece` the id; of two pieces with the same text the first counts. An id that is taken,
  /// or not below `most`, is an error.
  Status add(std::string piece, std::uint32_t id, std::uint32_t most);

  [[nodiscard]] std::optional<std::uint32_t> find(std::string_view piece) const;
  [[nodiscard]] std::optional<std::uint32_t> byte(char byte) const {
    return bytes_[static_cast<unsigned char>(byte)];
  }
  /// Whether all 256 bytes have a piece `<0xNN>`.
  [[nodiscard]] bool has_all_bytes() const;
  [[nodiscard]] const std::string& piece(std::uint32_t id) const { return pieces_[id]; }
  /// One more than the highest id; ids between may have no piece.
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(pieces_.size()); }

 private:
  // Lets a string_view look up a string.
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };

  std::vector<std::string> pieces_;
  std::vector<bool> taken_;
  std::array<std::optional<std::uint32_t>, 256> bytes_{};
  std::unordered_map<std::string, std::uint32_t, TextHash, std::equal_to<>> ids_;
};

}  // namespace plena
