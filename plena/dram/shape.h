// How the banks of a channel are numbered and grouped, and what else of a standard the scheduler
// must know when it is compiled: all of it constants, so that its loops have fixed lengths.
//
// The number of a bank is its place in its bank group times the number of groups, plus the group;
// groups are numbered through the channel, pseudo-channel highest, then stack id. So a set of
// groups becomes the set of their banks by one multiplication.
#pragma once

#include <bit>
#include <cstdint>

#include "plena/dram/preset.h"
#include "plena/dram/tick.h"

namespace plena::dram {

/// A set of banks of one channel, bit b for bank b; a set of bank groups likewise.
using BankSet = std::uint64_t;
using GroupSet = std::uint32_t;

inline constexpr unsigned kMaxBanks = 64;
inline constexpr unsigned kPseudoChannels = 2;
inline constexpr unsigned kGroupsPerStack = 4;
inline constexpr unsigned kBanksPerGroup = 4;

/// The set of one bank.
constexpr BankSet only(unsigned bank) {
  return BankSet{1} << bank;
}

/// The lowest bank of a set that is not empty.
constexpr unsigned first_of(BankSet banks) {
  return static_cast<unsigned>(std::countr_zero(banks));
}

template <unsigned kStackIds, unsigned kTicks>
struct Shape {
  static constexpr unsigned kStacksPerPseudoChannel = kStackIds;
  static constexpr unsigned kGroupsPerPseudoChannel = kStackIds * kGroupsPerStack;
  static constexpr unsigned kGroups = kPseudoChannels * kGroupsPerPseudoChannel;
  static constexpr unsigned kBanks = kGroups * kBanksPerGroup;
  static constexpr unsigned kBanksPerPseudoChannel = kBanks / kPseudoChannels;
  static constexpr BankSet kAllBanks = ~BankSet{0} >> (kMaxBanks - kBanks);
  static constexpr Tick kTicksPerCk = kTicks;
  /// With two ticks a CK only odd ones are rising edges, and only precharges do without one.
  static constexpr ShortTick kRisingEdge = kTicks - 1;

  static constexpr unsigned group(unsigned bank) { return bank % kGroups; }
  static constexpr unsigned pseudo_channel(unsigned bank) {
    return group(bank) / kGroupsPerPseudoChannel;
  }
  /// Numbered through the channel.
  static constexpr unsigned stack(unsigned bank) { return group(bank) / kGroupsPerStack; }

  /// The bank with this number in the order in which refreshes go through a pseudo-channel: bank
  /// fastest, then bank group, then stack id.
  static constexpr unsigned bank(unsigned pseudo_channel, unsigned in_refresh_order) {
    return in_refresh_order % kBanksPerGroup * kGroups + pseudo_channel * kGroupsPerPseudoChannel +
           in_refresh_order / kBanksPerGroup;
  }

  static constexpr BankSet banks_of(GroupSet groups) {
    BankSet first_of_each_group = 0;
    for (unsigned bank = 0; bank < kBanks; bank += kGroups) first_of_each_group |= only(bank);
    return groups * first_of_each_group;
  }
  static constexpr BankSet banks_of_pseudo_channel(unsigned pseudo_channel) {
    return banks_of(((GroupSet{1} << kGroupsPerPseudoChannel) - 1)
                    << (pseudo_channel * kGroupsPerPseudoChannel));
  }

  static constexpr ShortTick on_rising_edge(ShortTick tick) { return tick | kRisingEdge; }
};

using Hbm2 = Shape<1, 1>;
using Hbm3 = Shape<2, 2>;

/// Where a bank is, for people: numbers within the part above.
struct BankCoordinates {
  unsigned pseudo_channel;
  unsigned stack;
  unsigned group;
  unsigned bank;
};

constexpr BankCoordinates coordinates(Standard standard, unsigned bank) {
  const unsigned stacks =
      standard == Standard::Hbm3 ? Hbm3::kStacksPerPseudoChannel : Hbm2::kStacksPerPseudoChannel;
  const unsigned groups = kPseudoChannels * stacks * kGroupsPerStack;
  const unsigned group = bank % groups;
  return {.pseudo_channel = group / (groups / kPseudoChannels),
          .stack = group / kGroupsPerStack % stacks,
          .group = group % kGroupsPerStack,
          .bank = bank / groups};
}

}  // namespace plena::dram
