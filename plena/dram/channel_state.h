// The whole state of a channel in words, so that a state met again is known to be the same and a
// channel can be put back into it.
//
// Ticks count from a moment; what lies so far back that it holds nobody up any more is alike. Rows
// appear by name only: which requests and open rows of a bank share a row, not which row it is.
// What the banks themselves are like stands apart, since most of them are nothing to the requests
// at hand.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "plena/dram/address_map.h"
#include "plena/dram/shape.h"

namespace plena::dram {

/// Mostly small numbers: 16 bits each, larger ones behind a mark.
using StateWords = std::vector<std::int16_t>;

inline constexpr std::int16_t kLongWord = -0x8000;

inline void append_word(StateWords& words, std::int32_t word) {
  if (word > kLongWord && word <= 0x7FFF) [[likely]] {
    words.push_back(static_cast<std::int16_t>(word));
    return;
  }
  words.push_back(kLongWord);
  words.push_back(static_cast<std::int16_t>(word & 0xFFFF));
  words.push_back(static_cast<std::int16_t>(word >> 16));
}

class StateReader {
 public:
  explicit StateReader(const StateWords& words) : word_(words.data()) {}

  std::int32_t next() {
    const std::int16_t word = *word_++;
    if (word != kLongWord) [[likely]]
      return word;
    const auto low = static_cast<std::uint16_t>(*word_++);
    const auto high = static_cast<std::uint16_t>(*word_++);
    return static_cast<std::int32_t>(low | std::uint32_t{high} << 16);
  }

 private:
  const std::int16_t* word_;
};

/// Names of rows, bank by bank, counting from 0 in the order in which they are asked for.
class RowNames {
 public:
  std::int32_t of(unsigned bank, std::uint32_t row) {
    std::vector<std::uint32_t>& rows = rows_[bank];
    const auto found = std::find(rows.begin(), rows.end(), row);
    const auto name = static_cast<std::int32_t>(found - rows.begin());
    if (found == rows.end()) {
      rows.push_back(row);
      used_ |= only(bank);
    }
    return name;
  }
  void clear() {
    for (; used_ != 0; used_ &= used_ - 1) rows_[first_of(used_)].clear();
  }

 private:
  std::array<std::vector<std::uint32_t>, kMaxBanks> rows_;
  BankSet used_ = 0;
};

/// In the place of a row where a bank is closed.
inline constexpr std::uint32_t kNoRow = ~std::uint32_t{0};

/// What its own commands and refreshes have left behind in a bank. Ticks count from 0.
struct BankState {
  std::uint32_t open_row = kNoRow;
  Tick ready = 0;      // when its next row command may be sent
  Tick activated = 0;  // when its row was opened
};

/// What a request is called in a saved state, and back: the caller's own two numbers for its id.
struct RequestName {
  std::int32_t transfer = 0;
  std::int32_t burst = 0;
};
struct NamedRequest {
  std::uint64_t id = 0;
  BurstPlace place{};
};
using NameRequest = std::function<RequestName(std::uint64_t id)>;
using FindRequest = std::function<NamedRequest(RequestName name)>;

/// The moment a state is of: everything before tick `at` has happened. `refresh_due` is that of
/// the first channel.
struct StateMoment {
  Tick at = 0;
  Tick refresh_due = kNever;
};

}  // namespace plena::dram
