// Every row of constraints.tsv in the form "this command may be sent at tick t and not earlier".
#include "plena/dram/device_timing.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "plena/base/shared_data.h"
#include "plena/dram/testing/constraint_rules.h"

namespace plena::dram {
namespace {

using testing::ConstraintRule;

constexpr ShortTick kStart = 10'001;  // a rising edge

bool wants_open_row(Command command) {
  return is_column(command) || command == Command::Precharge;
}

// Banks of the same kind as seen from bank 0: itself, its group, its stack id, the other stack id
// and the other pseudo-channel.
std::vector<unsigned> neighbours(Standard standard) {
  const unsigned groups = standard == Standard::Hbm2 ? Hbm2::kGroups : Hbm3::kGroups;
  if (standard == Standard::Hbm2) return {0, groups, 1, groups / 2};
  return {0, groups, 1, groups / 4, groups / 2};
}

bool applies(const ConstraintRule& rule, Standard standard, unsigned previous, unsigned next) {
  return testing::instance_of_previous(rule.scope, standard, previous) ==
         testing::instance_of_next(rule.scope, standard, next);
}

bool is_bank_refresh(Command command) {
  return command == Command::RefreshBank || command == Command::ManageRefreshBank;
}
bool is_refresh(Command command) {
  return command >= Command::RefreshAll && command <= Command::ManageRefreshBank;
}

// Pairs no controller sends that keeps to one refresh mode and does without refresh management. The
// table has only the command bus for them; the device also waits until the precharge or refresh of
// a bank that both cover is over, and keeps managed refreshes as far apart as others.
bool stricter_than_the_table(Command previous, Command next, bool share_a_bank) {
  if (is_bank_refresh(previous) && is_bank_refresh(next))
    return share_a_bank || previous != Command::RefreshBank || next != Command::RefreshBank;
  return share_a_bank && ((previous == Command::PrechargeAll && is_bank_refresh(next)) ||
                          (is_bank_refresh(previous) && is_refresh(next)));
}

bool covers_pseudo_channel(Command command) {
  return command == Command::PrechargeAll || command == Command::RefreshAll ||
         command == Command::ManageRefreshAll;
}

// The first tick of `next` on its bank when `previous` was sent on bank 0 at kStart and all else
// lies long ago.
template <class S>
Tick first_tick(const DramPreset& preset, Command previous, Command next, unsigned next_bank) {
  DeviceTiming<S> device(preset);
  if (wants_open_row(previous)) device.send(Command::Activate, 0, kStart - 8000, 1);
  if (next_bank != 0 && wants_open_row(next))
    device.send(Command::Activate, next_bank, kStart - 6000, 1);
  device.send(previous, 0, kStart, 1);
  // An activated bank must be closed before its next row command.
  const bool whole = next == Command::RefreshAll || next == Command::ManageRefreshAll;
  const bool close = previous == Command::Activate && !wants_open_row(next) &&
                     next != Command::PrechargeAll &&
                     (next_bank == 0 || (whole && S::pseudo_channel(next_bank) == 0));
  if (close) device.send(Command::Precharge, 0, device.earliest(Command::Precharge, 0));
  return device.earliest(next, next_bank);
}

// nFAW: the fifth activate waits for the first of four, if not for the fourth.
template <class S>
Tick fifth_activate(const DramPreset& preset) {
  DeviceTiming<S> device(preset);
  ShortTick tick = kStart;
  for (const unsigned bank : {0U, 1U, 2U, 3U}) {
    tick = std::max(tick, device.earliest(Command::Activate, bank));
    device.send(Command::Activate, bank, tick, 1);
  }
  return device.earliest(Command::Activate, S::kGroups) - kStart;
}

// Every pair of commands on every pair of places: the strictest of its rows holds to the tick.
template <class S>
void check_pairs(const DramPreset& preset, const std::vector<ConstraintRule>& rules,
                 std::set<std::string>& tested) {
  for (std::size_t p = 0; p < kCommandCount; ++p) {
    for (std::size_t n = 0; n < kCommandCount; ++n) {
      const auto previous = static_cast<Command>(p);
      const auto next = static_cast<Command>(n);
      for (const unsigned bank : neighbours(preset.standard)) {
        Tick gap = -1;
        const auto holds = [&](const ConstraintRule& rule) {
          return rule.previous == previous && rule.next == next && rule.nth_previous == 1 &&
                 applies(rule, preset.standard, 0, bank);
        };
        for (const ConstraintRule& rule : rules)
          if (holds(rule)) gap = std::max(gap, rule.start_to_start);
        if (gap < 0) continue;
        const bool precharge = next == Command::Precharge || next == Command::PrechargeAll;
        const Tick allowed =
            precharge ? kStart + gap : S::on_rising_edge(static_cast<ShortTick>(kStart + gap));
        const Tick first = first_tick<S>(preset, previous, next, bank);
        const std::string what =
            fmt::format("{} on bank 0, then {} on bank {}", name(previous), name(next), bank);
        const bool share_a_bank =
            bank == 0 || (S::pseudo_channel(bank) == 0 &&
                          (covers_pseudo_channel(previous) || covers_pseudo_channel(next)));
        if (stricter_than_the_table(previous, next, share_a_bank)) {
          EXPECT_GE(first, allowed) << what;
          continue;
        }
        EXPECT_EQ(first, allowed) << what;
        for (const ConstraintRule& rule : rules)
          if (holds(rule) && rule.start_to_start == gap) tested.insert(rule.text);
      }
    }
  }
}

// A row that counts from the fourth-latest activate: four of them as close as the buses allow, so
// that no other rule holds the fifth back.
template <class S>
void check_four_activates(DramPreset preset, const ConstraintRule& rule,
                          std::set<std::string>& tested) {
  ASSERT_EQ(rule.previous, Command::Activate) << rule.text;
  ASSERT_EQ(rule.next, Command::Activate) << rule.text;
  ASSERT_EQ(rule.scope, testing::ConstraintScope::PseudoChannel) << rule.text;
  preset.timings.nRRDS = 2;
  preset.timings.nRRDL = 2;
  EXPECT_EQ(fifth_activate<S>(preset), rule.start_to_start) << rule.text;
  tested.insert(rule.text);
}

// Rows of the table for the preset: lines of the file that begin with its name.
std::set<std::string> rows_of(const std::string& path, const DramPreset& preset) {
  std::set<std::string> rows;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::string named = line.substr(0, line.find('\t'));
    std::transform(named.begin(), named.end(), named.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (named == preset.name) rows.insert(line);
  }
  return rows;
}

template <class S>
void check_every_row(const DramPreset& preset) {
  const std::string path = shared_data() + "/dram/constraints.tsv";
  const auto rules = testing::load_constraint_rules(path, preset);
  std::set<std::string> tested;
  check_pairs<S>(preset, rules, tested);
  for (const ConstraintRule& rule : rules)
    if (rule.nth_previous == 4) check_four_activates<S>(preset, rule, tested);
  const std::set<std::string> rows = rows_of(path, preset);
  EXPECT_EQ(tested.size(), rows.size());
  for (const std::string& row : rows) EXPECT_TRUE(tested.contains(row)) << "no test: " << row;
}

class EveryConstraint : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryConstraint, LetsACommandGoAtItsTickAndNotEarlier) {
  PLENA_NEEDS_SHARED();
  const DramPreset preset = *find_dram_preset(GetParam());
  if (preset.standard == Standard::Hbm2) {
    check_every_row<Hbm2>(preset);
  } else {
    check_every_row<Hbm3>(preset);
  }
}

TEST(FourActivateWindow, HoldsTheFifthActivateBack) {
  // Four activates 4 (HBM2-2400: 5) tCK apart; then nRRDS after the fourth or nFAW after the
  // first: max(12 + 4, nFAW) and max(15 + 5, nFAW), in HBM3 two ticks a tCK.
  EXPECT_EQ(fifth_activate<Hbm2>(*find_dram_preset("hbm2-1600")), 16);
  EXPECT_EQ(fifth_activate<Hbm2>(*find_dram_preset("hbm2-2000")), 16);
  EXPECT_EQ(fifth_activate<Hbm2>(*find_dram_preset("hbm2-2400")), 20);
  EXPECT_EQ(fifth_activate<Hbm3>(*find_dram_preset("hbm3-6400")), 48);
}

TEST(FourActivateWindow, BindsWhereActivatesComeCloserThanTheirOwnGapAllows) {
  // With nRRDS of 2 tCK the fifth comes nFAW = 15 after the first, not 8.
  DramPreset preset = *find_dram_preset("hbm2-2000");
  preset.timings.nRRDS = 2;
  preset.timings.nRRDL = 2;
  EXPECT_EQ(fifth_activate<Hbm2>(preset), 15);
}

TEST(DeviceTiming, MovingTheOriginChangesNothingButTheNumbers) {
  const DramPreset preset = *find_dram_preset("hbm3-6400");
  DeviceTiming<Hbm3> device(preset);
  device.send(Command::Activate, 3, 1001, 7);
  device.send(Command::Read, 3, 1065);
  const ShortTick precharge = device.earliest(Command::Precharge, 3);
  const ShortTick write = device.earliest(Command::Write, 3);
  device.shift_origin(1000);
  EXPECT_EQ(device.earliest(Command::Precharge, 3), precharge - 1000);
  EXPECT_EQ(device.earliest(Command::Write, 3), write - 1000);
  EXPECT_TRUE(device.is_open(3));
  EXPECT_EQ(device.open_row(3), 7U);
}

INSTANTIATE_TEST_SUITE_P(Presets, EveryConstraint,
                         ::testing::Values("hbm2-1600", "hbm2-2000", "hbm2-2400", "hbm3-6400"));

}  // namespace
}  // namespace plena::dram
