// The event-driven channel against the slow one, and its commands against the constraints, on
// random traffic.
#include "plena/dram/channel.h"

#include <map>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "plena/base/shared_data.h"
#include "plena/dram/address_map.h"
#include "plena/dram/testing/constraint_rules.h"
#include "plena/dram/testing/tick_by_tick.h"

namespace plena::dram {
namespace {

using testing::ConstraintChecker;
using testing::load_constraint_rules;
using testing::TickByTick;

std::string constraints() {
  return shared_data() + "/dram/constraints.tsv";
}

struct Offer {
  Tick tick;
  BurstPlace place;
  bool is_write;
};

// Streams, strides and random addresses, reads and writes, rushes and pauses.
std::vector<Offer> random_offers(std::mt19937_64& random, const DramPreset& preset,
                                 std::size_t count) {
  const AddressMap map = *AddressMap::make(
      preset, std::array{MapKind::Mop, MapKind::Row, MapKind::Bgi}[random() % 3], 1, 0);
  const std::uint64_t span = std::uint64_t{1} << (12 + random() % 18);
  const unsigned write_percent = std::array{0U, 10U, 50U, 100U}[random() % 4];
  const unsigned pause_percent = std::array{0U, 3U, 60U}[random() % 3];
  std::vector<Offer> offers;
  std::uint64_t address = 0;
  std::uint64_t stride = 32;
  Tick tick = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (random() % 64 == 0) stride = 32 * (random() % 2 == 0 ? 1 : random() % 1024);
    address = random() % 4 == 0 && stride > 32 * 512 ? random() % span : (address + stride) % span;
    if (random() % 100 < pause_percent)
      tick += preset.ticks_per_ck * static_cast<Tick>(random() % (random() % 50 == 0 ? 3000 : 12));
    offers.push_back({tick, map.place(address / 32 * 32), random() % 100 < write_percent});
  }
  return offers;
}

ChannelSettings random_settings(std::mt19937_64& random, const DramPreset& preset) {
  const auto size = [&] { return std::array{8U, 16U, 32U, 64U}[random() % 4]; };
  return {.preset = preset,
          .refresh = std::array{RefreshMode::AllBank, RefreshMode::PerBank,
                                RefreshMode::None}[random() % 3],
          .read_queue = size(),
          .write_queue = size()};
}

// Hands the offers over in order, each as soon as it may be; one refusal holds up all.
template <class S>
std::vector<Completion> run_channel(Channel<S>& channel, const std::vector<Offer>& offers) {
  Tick tick = 0;
  for (std::size_t i = 0; i < offers.size(); ++i) {
    tick = std::max(tick, offers[i].tick);
    channel.advance_to(tick);
    while (!channel.submit(offers[i].place, offers[i].is_write, i))
      tick = channel.advance_until_room(offers[i].is_write);
  }
  while (channel.unfinished() != 0) channel.advance_to(channel.next_event());
  return {channel.completions().begin(), channel.completions().end()};
}

std::vector<Completion> run_slowly(TickByTick& channel, const std::vector<Offer>& offers,
                                   Tick ticks_per_ck) {
  std::size_t next = 0;
  for (Tick tick = 0; channel.completions().size() < offers.size(); ++tick) {
    while (tick % ticks_per_ck == 0 && next < offers.size() && offers[next].tick <= tick &&
           channel.submit(offers[next].place, offers[next].is_write, next))
      ++next;
    channel.tick();
  }
  return channel.completions();
}

std::map<std::uint64_t, Completion> by_id(const std::vector<Completion>& completions) {
  std::map<std::uint64_t, Completion> result;
  for (const Completion& completion : completions) result[completion.id] = completion;
  return result;
}

template <class S>
void compare_with_tick_by_tick(const char* preset_name, std::uint64_t seed) {
  SCOPED_TRACE(fmt::format("{}, seed {}", preset_name, seed));
  std::mt19937_64 random(seed);
  const DramPreset preset = *find_dram_preset(preset_name);
  ChannelSettings settings = random_settings(random, preset);
  const bool row_hit = random() % 2 == 0;
  settings.policy = row_hit ? kReferenceRowHitPolicy : kReferencePolicy;
  const auto offers = random_offers(random, preset, 400);

  TickByTick slow(settings, row_hit, load_constraint_rules(constraints(), preset));
  const auto expected = by_id(run_slowly(slow, offers, preset.ticks_per_ck));
  CommandLog log;
  Channel<S> channel(settings);
  channel.set_log(&log);
  const auto completions = by_id(run_channel(channel, offers));
  ASSERT_EQ(completions.size(), offers.size());
  for (const auto& [id, completion] : completions)
    ASSERT_EQ(completion, expected.at(id)) << "request " << id;
  for (std::size_t i = 0; i < std::min(log.size(), slow.log().size()); ++i) {
    ASSERT_EQ(log[i].tick, slow.log()[i].tick) << "command " << i;
    ASSERT_EQ(log[i].command, slow.log()[i].command) << "command " << i;
  }
}

TEST(Channel, DoesOnEveryTickWhatTheTickingControllerDoes) {
  PLENA_NEEDS_SHARED();
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    compare_with_tick_by_tick<Hbm2>("hbm2-2000", seed);
    compare_with_tick_by_tick<Hbm3>("hbm3-6400", seed);
  }
}

template <class S>
void check_constraints(const DramPreset& preset, const Policy& policy, RefreshMode refresh,
                       std::uint64_t seed) {
  SCOPED_TRACE(fmt::format("{}, {}, seed {}", preset.name, name(refresh), seed));
  std::mt19937_64 random(seed);
  ChannelSettings settings = random_settings(random, preset);
  settings.policy = policy;
  settings.refresh = refresh;
  const auto offers = random_offers(random, preset, 1500);
  CommandLog log;
  Channel<S> channel(settings);
  channel.set_log(&log);
  ASSERT_EQ(run_channel(channel, offers).size(), offers.size());
  ConstraintChecker checker(load_constraint_rules(constraints(), preset), preset);
  std::size_t columns = 0;
  for (const CommandRecord& command : log) {
    const std::string problem = checker.check(command);
    ASSERT_EQ(problem, "");
    columns += is_column(command.command) ? 1 : 0;
  }
  const ChannelStatistics& statistics = channel.statistics();
  EXPECT_EQ(columns + statistics.reads().from_queue + statistics.writes().from_queue,
            offers.size());
}

class RandomTraffic : public ::testing::TestWithParam<const char*> {};

TEST_P(RandomTraffic, NeverBreaksAConstraint) {
  PLENA_NEEDS_SHARED();
  const DramPreset preset = *find_dram_preset(GetParam());
  std::uint64_t seed = 100;
  for (const RefreshMode refresh :
       {RefreshMode::AllBank, RefreshMode::PerBank, RefreshMode::None}) {
    for (const Policy& policy : {kOpenPolicy, kReferencePolicy, kReferenceRowHitPolicy}) {
      ++seed;
      if (preset.standard == Standard::Hbm2) {
        check_constraints<Hbm2>(preset, policy, refresh, seed);
      } else {
        check_constraints<Hbm3>(preset, policy, refresh, seed);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Presets, RandomTraffic,
                         ::testing::Values("hbm2-1600", "hbm2-2000", "hbm2-2400", "hbm3-6400"));

TEST(ConstraintChecker, SeesACommandThatComesATickEarly) {
  PLENA_NEEDS_SHARED();
  const DramPreset preset = *find_dram_preset("hbm2-2000");
  const auto rules = load_constraint_rules(constraints(), preset);
  // nRCDRD of 14 counts from the end of the two-cycle activate: 15 from its start.
  for (const Tick gap : {14, 15}) {
    ConstraintChecker checker(rules, preset);
    EXPECT_EQ(checker.check({.tick = 10, .command = Command::Activate, .row = 3}), "");
    EXPECT_EQ(checker.check({.tick = 10 + gap, .command = Command::Read, .row = 3}).empty(),
              gap == 15);
  }
  ConstraintChecker checker(rules, preset);
  EXPECT_NE(checker.check({.tick = 10, .command = Command::Read, .row = 3}), "");
}

// A channel with the open policy and no refresh, for small situations by hand.
class OpenChannel : public ::testing::Test {
 protected:
  static ChannelSettings settings(RefreshMode refresh) {
    return {.preset = *find_dram_preset("hbm2-2000"), .policy = kOpenPolicy, .refresh = refresh};
  }
  static BurstPlace place(unsigned bank, std::uint32_t row, unsigned column) {
    return {.channel = 0,
            .row = row,
            .bank = static_cast<std::uint8_t>(bank),
            .column = static_cast<std::uint8_t>(column)};
  }
  static std::map<std::uint64_t, Tick> finish(Channel<Hbm2>& channel) {
    while (channel.unfinished() != 0) channel.advance_to(channel.next_event());
    std::map<std::uint64_t, Tick> finished;
    for (const Completion& completion : channel.completions())
      finished[completion.id] = completion.finished;
    return finished;
  }
};

// Six reads each of one row in four bank groups, then one of another row of bank 0: how many of
// bank 0's reads come before its precharge.
std::size_t reads_before_precharge(const Policy& policy) {
  Channel<Hbm2> channel(
      {.preset = *find_dram_preset("hbm2-2000"), .policy = policy, .refresh = RefreshMode::None});
  CommandLog log;
  channel.set_log(&log);
  for (std::uint64_t id = 0; id < 25; ++id) {
    const BurstPlace place{.channel = 0,
                           .row = id < 24 ? 1U : 2U,
                           .bank = static_cast<std::uint8_t>(id % 4),
                           .column = static_cast<std::uint8_t>(id / 4)};
    channel.advance_to(static_cast<Tick>(id / 24));
    EXPECT_TRUE(channel.submit(place, false, id));
  }
  while (channel.unfinished() != 0) channel.advance_to(channel.next_event());
  std::size_t reads = 0;
  for (const CommandRecord& command : log) {
    if (command.bank != 0) continue;
    if (command.command == Command::Precharge) break;
    if (command.command == Command::Read) ++reads;
  }
  return reads;
}

TEST_F(OpenChannel, ServesHitsThatWaitBeforeItClosesTheirRowForAYoungerRequest) {
  // A burst every two cycles in turn: eight between two reads of bank 0, and nRTP is five. The
  // reference uses the three in between for the precharge.
  EXPECT_LT(reads_before_precharge(kReferencePolicy), 6U);
  EXPECT_EQ(reads_before_precharge(kOpenPolicy), 6U);
}

TEST_F(OpenChannel, LetsTheOtherPseudoChannelGoOnDuringARefresh) {
  Channel<Hbm2> channel(settings(RefreshMode::PerBank));
  // Bank 0 is refreshed from cycle 122 on, for 159 cycles up to its next activate. A request for
  // it waits; one for another bank of the pseudo-channel waits nRREFD; one for the other
  // pseudo-channel is served at once: activate at 131, read 15 later, data after 16 more.
  channel.advance_to(130);
  ASSERT_TRUE(channel.submit(place(0, 1, 0), false, 0));
  ASSERT_TRUE(channel.submit(place(Hbm2::bank(1, 0), 1, 0), false, 1));
  const auto finished = finish(channel);
  EXPECT_EQ(finished.at(1), 131 + 15 + 16);
  EXPECT_EQ(finished.at(0), 122 + 159 + 15 + 16);
}

TEST_F(OpenChannel, StopsOnlyTheBanksAPendingRefreshCovers) {
  Channel<Hbm2> channel(settings(RefreshMode::AllBank));
  CommandLog log;
  channel.set_log(&log);
  // Both pseudo-channels are due at 3900. A row opened at 3890 in pseudo-channel 0 keeps it from
  // being precharged until 3890 + 35; pseudo-channel 1 is idle and refreshed at once.
  channel.advance_to(3889);
  ASSERT_TRUE(channel.submit(place(0, 1, 0), false, 0));
  channel.advance_to(4000);
  std::vector<std::pair<Command, Tick>> sent;
  for (const CommandRecord& command : log) sent.emplace_back(command.command, command.tick);
  const std::vector<std::pair<Command, Tick>> expected = {
      {Command::Activate, 3890},
      {Command::RefreshAll, 3900},  // pseudo-channel 1
      {Command::Read, 3905},
      {Command::PrechargeAll, 3925},
      {Command::RefreshAll, 3939}};
  EXPECT_EQ(sent, expected);
}

TEST_F(OpenChannel, ReadsOnOnePseudoChannelWhileItWritesOnTheOther) {
  Channel<Hbm2> channel(settings(RefreshMode::None));
  for (std::uint64_t id = 0; id < 16; ++id) {
    ASSERT_TRUE(channel.submit(place(0, 1, static_cast<unsigned>(id)), false, id));
    ASSERT_TRUE(
        channel.submit(place(Hbm2::bank(1, 0), 1, static_cast<unsigned>(id)), true, 100 + id));
  }
  const auto finished = finish(channel);
  // Each alone: activate, then a burst every nCCDL of 4. The activates share the row bus, so the
  // second is two cycles later; reads 1 + 15 + 15 * 4 + 16, writes 3 + 13 + 15 * 4, each maybe a
  // cycle late where both want the column bus.
  EXPECT_LE(finished.at(15), 1 + 15 + 60 + 16 + 3);
  EXPECT_LE(finished.at(115), 3 + 13 + 60 + 3);
}

TEST(Channel, AnswersReadsFromItsWriteQueueAndMergesWrites) {
  Channel<Hbm2> channel({.preset = *find_dram_preset("hbm2-2000"),
                         .policy = kReferencePolicy,
                         .refresh = RefreshMode::None,
                         .read_queue = 2,
                         .write_queue = 2});
  const BurstPlace place{.channel = 0, .row = 1, .bank = 0, .column = 0};
  ASSERT_TRUE(channel.submit(place, true, 0));
  ASSERT_TRUE(channel.submit(place, false, 1));
  ASSERT_TRUE(channel.submit(place, true, 2));
  EXPECT_EQ(channel.queued(true), 1U);
  EXPECT_EQ(channel.queued(false), 0U);
  EXPECT_EQ(channel.statistics().reads().from_queue, 1U);
  EXPECT_EQ(channel.statistics().writes().from_queue, 1U);
}

// Ticks far beyond 32 bits give what small ones give.
TEST(Channel, DoesNotCareHowLateItIs) {
  const DramPreset preset = *find_dram_preset("hbm3-6400");
  ChannelSettings settings{.preset = preset, .policy = kOpenPolicy, .refresh = RefreshMode::None};
  std::mt19937_64 random(7);
  auto offers = random_offers(random, preset, 2000);
  constexpr Tick kEarly = 2'000;
  constexpr Tick kLate = Tick{1} << 34;
  for (Offer& offer : offers) offer.tick += kEarly;
  Channel<Hbm3> early(settings);
  const auto expected = run_channel(early, offers);
  for (Offer& offer : offers) offer.tick += kLate;
  Channel<Hbm3> late(settings);
  const auto completions = run_channel(late, offers);
  ASSERT_EQ(completions.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(completions[i].id, expected[i].id);
    EXPECT_EQ(completions[i].accepted, expected[i].accepted + kLate);
    EXPECT_EQ(completions[i].finished, expected[i].finished + kLate);
  }
}

}  // namespace
}  // namespace plena::dram
