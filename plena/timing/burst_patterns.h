// What transfers ask a memory for, each kind met so far with a number of its own. Two transfers of
// one pattern use the same channels, banks and columns in the same order; their elements, and their
// scales, lie any number of whole rows of all banks apart.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "plena/dram/controller.h"
#include "plena/timing/transfer_rows.h"

namespace plena {

/// Where a transfer's elements and its scales begin, rounded down to whole rows of all banks.
struct PatternOrigin {
  std::array<std::uint64_t, 2> address{};    // by is_scale
  std::array<std::uint32_t, 2> first_row{};  // of a bank; by is_scale
  std::array<std::uint32_t, 2> last_row{};
};

struct BurstPattern {
  struct Burst {
    std::uint64_t offset = 0;  // from the origin
    std::uint32_t place = 0;   // which of `places`
    bool is_scale = false;
  };
  /// A row of a bank.
  struct Place {
    std::uint32_t row = 0;   // from the origin's
    std::uint16_t bank = 0;  // kMaxBanks * channel + bank
    bool is_scale = false;
  };
  struct Row {
    std::uint32_t begin = 0;  // its first burst; the one before may be shared with the row before
    std::uint32_t end = 0;
  };

  std::int32_t number = 0;
  std::vector<Burst> bursts;
  std::vector<Place> places;         // in the order in which they are asked for
  std::vector<std::uint32_t> lasts;  // the last burst of each place
  std::vector<Row> rows;

  [[nodiscard]] std::uint64_t address(std::size_t burst, const PatternOrigin& origin) const {
    return origin.address[bursts[burst].is_scale] + bursts[burst].offset;
  }
  [[nodiscard]] static std::uint32_t row(const Place& place, const PatternOrigin& origin) {
    return origin.first_row[place.is_scale] + place.row;
  }
};

class BurstPatterns {
 public:
  std::pair<std::shared_ptr<const BurstPattern>, PatternOrigin> of(
      const TransferRows& rows, const dram::Controller& controller);

 private:
  using Key = std::array<std::uint64_t, 8>;
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  struct Known {
    std::shared_ptr<const BurstPattern> pattern;
    // What followed it last, and its places.
    std::pair<const Key, Known>* next = nullptr;
    const BurstPattern::Place* next_places = nullptr;
  };

  static constexpr std::size_t kMostBursts = std::size_t{1} << 22;

  std::unordered_map<Key, Known, Hash> known_;
  std::pair<const Key, Known>* latest_ = nullptr;
  std::int32_t met_ = 0;
  std::size_t bursts_ = 0;  // of all of them
};

}  // namespace plena
