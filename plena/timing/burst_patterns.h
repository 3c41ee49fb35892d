// What transfers ask a memory for, each kind met so far with a number of its own: two transfers of
// one pattern differ by whole rows of all banks, and so use the same banks and columns.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "plena/dram/controller.h"
#include "plena/timing/transfer_rows.h"

namespace plena {

struct BurstPattern {
  std::uint32_t number = 0;
  std::uint32_t bursts = 0;
  std::vector<dram::BankSet> banks;  // by channel, those it touches
};

class BurstPatterns {
 public:
  /// Valid until forget().
  const BurstPattern& of(const TransferRows& rows, const dram::Controller& controller);
  [[nodiscard]] std::size_t size() const { return known_.size(); }
  void forget() { known_.clear(); }

 private:
  using Key = std::array<std::uint64_t, 7>;
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };

  std::unordered_map<Key, BurstPattern, Hash> known_;
  std::uint32_t met_ = 0;
};

}  // namespace plena
