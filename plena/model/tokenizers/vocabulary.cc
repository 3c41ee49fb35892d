#include "plena/model/tokenizers/vocabulary.h"

#include <algorithm>
#include <utility>

namespace plena {

namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::optional<char> parse_byte_piece(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') return std::nullopt;
  const int high = hex_digit(piece[3]);
  const int low = hex_digit(piece[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<char>(high << 4 | low);
}

Status Vocabulary::add(std::string piece, std::uint32_t id, std::uint32_t most) {
  if (id >= most) {
    return fail_with_hint(ErrorCode::Format,
                          fmt::format("token {} of a vocabulary of {}", id, most),
                          "use the tokenizer the model was trained with");
  }
  if (id >= pieces_.size()) {
    pieces_.resize(id + 1);
    taken_.resize(id + 1);
  }
  if (taken_[id]) return fail(ErrorCode::Format, "two tokens have the id {}", id);
  taken_[id] = true;
  const auto byte = parse_byte_piece(piece);
  const bool is_first = ids_.try_emplace(piece, id).second;
  if (byte && is_first) bytes_[static_cast<unsigned char>(*byte)] = id;
  pieces_[id] = std::move(piece);
  return {};
}

std::optional<std::uint32_t> Vocabulary::find(std::string_view piece) const {
  const auto found = ids_.find(piece);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

bool Vocabulary::has_all_bytes() const {
  return std::all_of(bytes_.begin(), bytes_.end(), [](const auto& id) { return id.has_value(); });
}

}  // namespace plena
