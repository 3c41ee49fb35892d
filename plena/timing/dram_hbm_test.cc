// Transfers on the DRAM controller: hand-over clock by clock, rows one by one, and that questions
// never change answers.
#include "plena/timing/dram_hbm.h"

#include <array>
#include <random>

#include <gtest/gtest.h>

#include "plena/timing/hbm_choice.h"
#include "plena/timing/testing/random_program.h"
#include "plena/timing/testing/timed_run.h"

namespace plena {
namespace {

std::unique_ptr<DramHbm> memory(std::string_view preset, std::uint32_t clock_mhz = 1000,
                                std::uint32_t channels = 8) {
  const dram::DramSettings settings{.preset = *dram::find_dram_preset(preset),
                                    .channels = channels};
  return std::make_unique<DramHbm>(std::move(*dram::Controller::make(settings)), clock_mhz);
}

constexpr TransferStart kAtZero{.unit = Unit::LoadV, .issue = 0, .before = 1, .after = 3};

// One row of one burst of a plain type, at address 0.
const TransferRows kOneBurst{.stride = 32, .count = 1, .length = 32, .width = 8};

// README of the reference measurements: a read of a closed bank takes 32 cycles of HBM2-2000 from
// its acceptance, a write 14. Offered at cycle 1, delivered 3 behind the end.
TEST(DramHbm, OneBurstTakesAnIdleMemorysLatency) {
  const auto hbm = memory("hbm2-2000");
  const Ticket load = hbm->start(kAtZero, kOneBurst);
  EXPECT_EQ(hbm->delivered(load, 0, 0), 1U + 32U + 3U);
  EXPECT_EQ(hbm->complete(load), 36U);

  const auto other = memory("hbm2-2000");
  TransferRows rows = kOneBurst;
  rows.write = true;
  const Ticket store =
      other->start({.unit = Unit::Store, .issue = 0, .before = 1, .after = 3}, rows);
  EXPECT_EQ(other->accepted(store), 1U);
  EXPECT_EQ(other->complete(store), 1U + 14U + 3U);
}

class CommandRecorder final : public TimelineListener {
 public:
  void issued(const IssueEvent& /*event*/) override {}
  void transferred(const TransferEvent& /*event*/) override {}
  void commanded(std::span<const dram::CommandRecord> told, const ClockRatio& clock) override {
    for (const dram::CommandRecord& command : told) {
      commands.push_back(command.command);
      cycles.push_back(clock.cycle_at(static_cast<std::uint64_t>(command.tick)));
    }
  }
  std::vector<dram::Command> commands;
  std::vector<Cycle> cycles;
};

// Accepted at tick 1, the row is opened a tick later. nRCDRD counts from the end of an ACT, which
// takes 2 CK, to the end of a RD, which takes 1 (hbm.md).
TEST(DramHbm, TellsItsCommandsToWhoListens) {
  CommandRecorder recorder;
  const auto hbm = memory("hbm2-2000");
  hbm->set_listener(&recorder);
  hbm->complete(hbm->start(kAtZero, kOneBurst));
  hbm->set_listener(nullptr);
  EXPECT_EQ(recorder.commands, (std::vector{dram::Command::Activate, dram::Command::Read}));
  const auto to_read = static_cast<Cycle>(dram::find_dram_preset("hbm2-2000")->timings.nRCDRD);
  EXPECT_EQ(recorder.cycles, (std::vector<Cycle>{2, 2 + 2 + to_read - 1}));
}

// HBM3-6400: 54.5 cycles of 625 ps from acceptance; the first edge at or after 1 ns is 2 CK.
TEST(DramHbm, ClocksOfMachineAndMemoryDiffer) {
  const auto hbm = memory("hbm3-6400");
  const Ticket load = hbm->start(kAtZero, kOneBurst);
  // 56.5 · 0.625 = 35.3125 ns, so cycle 36.
  EXPECT_EQ(hbm->complete(load), 36U + 3U);
}

TEST(DramHbm, AQuestionGoesNoFurtherThanItsAnswer) {
  const auto hbm = memory("hbm2-2000");
  const Ticket load = hbm->start(kAtZero, kOneBurst);
  EXPECT_FALSE(hbm->complete_by(load, 35));
  EXPECT_TRUE(hbm->complete_by(load, 36));
  EXPECT_TRUE(hbm->accepted_by(load, 1));
}

// Rows in order, elements before scales, shared bursts asked for once.
TEST(DramHbm, RowsAreDeliveredAtTheirLastBurst) {
  const auto hbm = memory("hbm2-2000");
  // Four rows of 16 bytes: two bursts of two rows each.
  const TransferRows rows{.stride = 16, .count = 4, .length = 16, .width = 8};
  const Ticket load = hbm->start(kAtZero, rows);
  EXPECT_EQ(hbm->delivered(load, 0, 0), hbm->delivered(load, 1, 1));
  EXPECT_EQ(hbm->delivered(load, 2, 2), hbm->delivered(load, 3, 3));
  EXPECT_EQ(hbm->traffic().read, 2U);
}

// 96 bursts of load-M and 12 of load-V for one channel, whose queue takes 32: they take turns, so
// that the later, shorter transfer is handed over first.
TEST(DramHbm, UnitsTakeTurns) {
  const auto hbm = memory("hbm2-2000", 1000, 1);
  TransferRows rows{.stride = 96, .count = 32, .length = 96, .width = 8};
  const Ticket long_one = hbm->start({.unit = Unit::LoadM, .issue = 0}, rows);
  rows.count = 4;
  rows.base = 1U << 16;
  const Ticket short_one = hbm->start({.unit = Unit::LoadV, .issue = 1}, rows);
  EXPECT_LT(hbm->accepted(short_one), hbm->accepted(long_one));
  EXPECT_LT(hbm->complete(short_one), hbm->complete(long_one));
}

// Within a unit the oldest transfer goes first.
TEST(DramHbm, AUnitsTransfersAreHandedOverInOrder) {
  const auto hbm = memory("hbm2-2000", 1000, 1);
  TransferRows rows{.stride = 96, .count = 32, .length = 96, .width = 8};
  const Ticket first = hbm->start({.unit = Unit::LoadV, .issue = 0}, rows);
  rows.count = 1;
  rows.base = 1U << 16;
  const Ticket second = hbm->start({.unit = Unit::LoadV, .issue = 1}, rows);
  EXPECT_GE(hbm->accepted(second), hbm->accepted(first));
}

struct Asked {
  std::vector<Cycle> delivered;
  Cycle accepted = 0;
  Cycle complete = 0;

  friend bool operator==(const Asked&, const Asked&) = default;
};

// Random transfers; each is asked about at once, later, or only at the end.
std::vector<Asked> play(std::uint64_t seed, bool curious) {
  std::mt19937_64 random(seed);
  const auto hbm = memory(seed % 2 == 0 ? "hbm2-2000" : "hbm3-6400", seed % 3 == 0 ? 1700 : 1000,
                          seed % 5 == 0 ? 1 : 8);
  std::vector<Asked> all;
  std::vector<Ticket> tickets;
  Cycle now = 0;
  for (int n = 0; n < 40; ++n) {
    now += 1 + random() % 60;
    TransferRows rows{.base = random() % 64 * 4096,
                      .stride = 64 + random() % 4 * 64,
                      .scale = 1U << 20,
                      .count = 1 + static_cast<std::uint32_t>(random() % 32),
                      .length = 64,
                      .width = 8,
                      .block = 8};
    const auto unit = static_cast<Unit>(static_cast<int>(Unit::LoadM) + random() % 3);
    rows.write = unit == Unit::Store;
    tickets.push_back(hbm->start({.unit = unit, .issue = now, .before = 1, .after = 3}, rows));
    const std::uint64_t horizon = now + random() % 3;
    const std::uint64_t pick = random() % tickets.size();
    if (curious) {
      // What an instruction that waits does: the next one issues behind the answer. Here nothing
      // may be asked that lies beyond the next issue, so the question has a horizon.
      static_cast<void>(hbm->complete_by(tickets[pick], std::min<Cycle>(horizon, now)));
      static_cast<void>(hbm->accepted_by(tickets[pick], now));
    }
  }
  for (const Ticket ticket : tickets) {
    Asked asked;
    asked.accepted = hbm->accepted(ticket);
    asked.delivered.push_back(hbm->delivered(ticket, 0, 0));
    asked.complete = hbm->complete(ticket);
    EXPECT_LE(asked.delivered[0], asked.complete);
    all.push_back(asked);
  }
  return all;
}

TEST(DramHbm, AskingEarlierChangesNothing) {
  for (std::uint64_t seed = 0; seed < 30; ++seed)
    EXPECT_EQ(play(seed, false), play(seed, true)) << "seed " << seed;
}

// Everything the controller has counted, as text.
std::string counted(const HbmModel& hbm) {
  const dram::ChannelStatistics all = *hbm.controller_statistics();
  std::string text;
  for (const dram::DirectionStatistics& one : all.direction) {
    text +=
        fmt::format("{} hits, {} misses, {} conflicts, {} from the queue, {} ticks;", one.rows.hits,
                    one.rows.misses, one.rows.conflicts, one.from_queue, one.queued_ticks);
    for (const auto& [latency, times] : one.latency.counts())
      text += fmt::format(" {} x {}", times, latency);
    text += "\n";
  }
  for (const std::uint64_t sent : all.commands) text += fmt::format("{} ", sent);
  return text;
}

// Streams over a few tiles again and again, at intervals that recur, so that runs of transfers are
// met again: alone, overlapping, across refreshes, and in rows not seen before.
std::vector<Cycle> stream(DramHbm& hbm, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::uint64_t interval = 20 + random() % 120;
  const std::uint64_t tiles = 1 + random() % 6;
  const std::uint64_t step = std::uint64_t{4096} << random() % 8;
  std::vector<Cycle> answers;
  std::vector<Ticket> alive;
  Cycle now = 0;
  for (std::uint64_t n = 0; n < 400; ++n) {
    const auto unit = n % 5 == 4 ? Unit::Store : n % 3 == 2 ? Unit::LoadV : Unit::LoadM;
    TransferRows rows{.base = n / 60 * (std::uint64_t{1} << 20) + n % tiles * step,
                      .stride = 64,
                      .scale = 1U << 19,
                      .count = unit == Unit::LoadM ? 32U : 1 + static_cast<std::uint32_t>(n % 4),
                      .length = 64,
                      .width = 8,
                      .block = 8,
                      .write = unit == Unit::Store};
    now += n % 7 == 0 ? interval * 3 : interval / (1 + n % 2);
    alive.push_back(hbm.start({.unit = unit, .issue = now, .before = 1, .after = 3}, rows));
    if (n % 4 == 1) answers.push_back(hbm.accepted_by(alive.back(), now + 3) ? 1 : 0);
    if (n % 3 != 0) continue;
    // Waits for the first, then lets go of all that are done by then.
    answers.push_back(hbm.first_complete(alive));
    now = std::max(now, answers.back());
    std::erase_if(alive, [&](Ticket ticket) {
      if (!hbm.complete_by(ticket, now)) return false;
      answers.push_back(hbm.complete(ticket));
      hbm.release(ticket);
      return true;
    });
  }
  for (const Ticket ticket : alive) {
    answers.push_back(hbm.accepted(ticket));
    answers.push_back(hbm.delivered(ticket, 0, 0));
    answers.push_back(hbm.complete(ticket));
  }
  hbm.catch_up();
  return answers;
}

TEST(DramHbm, RememberedStreamsTakeTheSameCyclesAsOneByOne) {
  std::uint64_t remembered = 0;
  for (const char* preset : {"hbm2-2000", "hbm3-6400", "hbm2-1600"}) {
    for (std::uint64_t seed = 0; seed < 24; ++seed) {
      const std::uint32_t channels = seed % 3 == 0 ? 1 : 8;
      const auto remembering = memory(preset, 1000, channels);
      const auto one_by_one = memory(preset, 1000, channels);
      one_by_one->remember_streams(false);
      EXPECT_EQ(stream(*remembering, seed), stream(*one_by_one, seed)) << preset << " " << seed;
      EXPECT_EQ(counted(*remembering), counted(*one_by_one)) << preset << " " << seed;
      EXPECT_EQ(one_by_one->bursts_remembered(), 0U);
      remembered += remembering->bursts_remembered();
    }
  }
  EXPECT_GT(remembered, 0U);
}

// nREFI of all presets: 3.9 us.
constexpr Cycle kRefreshInterval = 3900;

// The same crowd of loads and stores two refresh intervals later, with the same questions. Answers
// count from the start of the round.
std::vector<Cycle> round_of_transfers(DramHbm& hbm, std::uint64_t seed, Cycle begin) {
  std::mt19937_64 random(seed);
  std::vector<Cycle> answers;
  std::vector<Ticket> alive;
  Cycle now = begin;
  for (int n = 0; n < 40; ++n) {
    now += random() % 4 != 0 ? 1 + random() % 30 : random() % 500;
    const auto unit = static_cast<Unit>(static_cast<int>(Unit::LoadM) + random() % 3);
    TransferRows rows{.base = random() % 8 << 16,
                      .first = random() % 16 * 64,
                      .stride = std::uint64_t{64} << random() % 6,
                      .scale = 1U << 20,
                      .count = 1 + static_cast<std::uint32_t>(random() % 40),
                      .length = 64,
                      .width = 8,
                      .block = random() % 2 == 0 ? 8U : 0U,
                      .write = unit == Unit::Store};
    alive.push_back(hbm.start({.unit = unit, .issue = now, .before = 1, .after = 3}, rows));
    const Ticket asked = alive[random() % alive.size()];
    if (random() % 3 == 0) answers.push_back(hbm.accepted_by(asked, now) ? 1 : 0);
    if (random() % 3 != 0) continue;
    answers.push_back((random() % 2 == 0 ? hbm.delivered(asked, 0, 0) : hbm.complete(asked)) -
                      begin);
    now = std::max(now, begin + answers.back());
  }
  for (const Ticket ticket : alive) {
    answers.push_back(hbm.complete(ticket) - begin);
    hbm.release(ticket);
  }
  if (seed % 2 == 0) hbm.catch_up();
  return answers;
}

std::uint64_t round_is_remembered(std::string_view preset, std::uint64_t seed) {
  const std::uint32_t channels = seed % 3 == 0 ? 1 : 8;
  const auto remembering = memory(preset, 1000, channels);
  const auto one_by_one = memory(preset, 1000, channels);
  one_by_one->remember_streams(false);
  constexpr int kRounds = 12;
  std::uint64_t before_last = 0;
  for (int round = 0; round < kRounds; ++round) {
    const Cycle begin = 4 * kRefreshInterval * static_cast<Cycle>(round) + 100 * seed;
    before_last = remembering->bursts_remembered();
    EXPECT_EQ(round_of_transfers(*remembering, seed, begin),
              round_of_transfers(*one_by_one, seed, begin))
        << preset << " seed " << seed << " round " << round;
  }
  remembering->catch_up();
  EXPECT_EQ(counted(*remembering), counted(*one_by_one)) << preset << " seed " << seed;
  const std::uint64_t of_last = remembering->traffic().total() / kRounds;
  return 100 * (remembering->bursts_remembered() - before_last) / of_last;
}

// Crowds that overlap, refreshes in their midst: met often enough, most bursts are remembered.
TEST(DramHbm, CrowdsAcrossRefreshesTakeTheSameCyclesAsOneByOne) {
  std::uint64_t percent = 0;
  constexpr std::uint64_t kSeeds = 8;
  for (const char* preset : {"hbm2-2000", "hbm3-6400", "hbm2-2400"})
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed)
      percent += round_is_remembered(preset, seed);
  EXPECT_GT(percent / (3 * kSeeds), 25U);
}

// A walk through memory as through a model's weights, tile after tile, so fast that the memory is
// never at rest; now and then a few rows of a cache are stored and read. A transfer starts when the
// one four before is complete.
std::vector<Cycle> walk(DramHbm& hbm, std::uint64_t seed, std::uint64_t transfers,
                        bool interrupted = true) {
  std::mt19937_64 random(seed);
  const std::uint64_t every = interrupted ? 8 + random() % 40 : transfers;
  const std::uint64_t cache = std::uint64_t{1} << 33;
  std::vector<Cycle> answers;
  std::vector<Ticket> alive;
  Cycle now = 0;
  for (std::uint64_t n = 0; n < transfers; ++n) {
    TransferRows rows{.first = n * 4096,
                      .stride = 64,
                      .scale = (std::uint64_t{1} << 28) + seed * 512,
                      .count = 64,
                      .length = 64,
                      .width = 8,
                      .block = 8};
    Unit unit = Unit::LoadM;
    if (n % every == every - 1) {
      unit = random() % 2 == 0 ? Unit::Store : Unit::LoadV;
      rows.base = cache;
      rows.first = random() % 64 * 64;
      rows.stride = std::uint64_t{1} << (12 + random() % 4);
      rows.count = 4;
      rows.write = unit == Unit::Store;
    }
    alive.push_back(hbm.start({.unit = unit, .issue = now, .before = 1, .after = 3}, rows));
    now += 1 + (n % 5 == 0 ? random() % 3 : 0);
    if (alive.size() < 4) continue;
    if (n % 9 == 0) answers.push_back(hbm.delivered(alive.front(), 0, 1));
    answers.push_back(hbm.complete(alive.front()));
    now = std::max(now, answers.back());
    hbm.release(alive.front());
    alive.erase(alive.begin());
  }
  for (const Ticket ticket : alive) answers.push_back(hbm.complete(ticket));
  hbm.catch_up();
  return answers;
}

std::unique_ptr<DramHbm> memory_of_kind(std::uint64_t kind) {
  constexpr std::array kPresets = {"hbm2-2000", "hbm3-6400", "hbm2-1600", "hbm2-2400"};
  constexpr std::array kMaps = {dram::MapKind::Mop, dram::MapKind::Row, dram::MapKind::Bgi};
  constexpr std::array kPolicies = {dram::kOpenPolicy, dram::kReferencePolicy,
                                    dram::kReferenceRowHitPolicy};
  const dram::DramSettings settings{
      .preset = *dram::find_dram_preset(kPresets[kind % kPresets.size()]),
      .channels = kind % 5 == 4 ? 2U : 8U,
      .map = kMaps[kind / 4 % kMaps.size()],
      .policy = kPolicies[kind / 2 % kPolicies.size()],
      .refresh = kind % 7 == 6 ? dram::RefreshMode::None : dram::RefreshMode::AllBank,
      .read_queue = kind % 3 == 2 ? 8U : 32U,
      .write_queue = kind % 3 == 1 ? 4U : 32U};
  return std::make_unique<DramHbm>(std::move(*dram::Controller::make(settings)),
                                   kind % 4 == 3 ? 1700 : 1000);
}

TEST(DramHbm, StreamsThatNeverRestTakeTheSameCyclesAsOneByOneInEveryMemory) {
  for (std::uint64_t kind = 0; kind < 24; ++kind) {
    const auto remembering = memory_of_kind(kind);
    const auto one_by_one = memory_of_kind(kind);
    one_by_one->remember_streams(false);
    EXPECT_EQ(walk(*remembering, kind, 220), walk(*one_by_one, kind, 220)) << "memory " << kind;
    EXPECT_EQ(stream(*remembering, kind), stream(*one_by_one, kind)) << "memory " << kind;
    EXPECT_EQ(counted(*remembering), counted(*one_by_one)) << "memory " << kind;
  }
}

// The steady part of a walk is known after one time around all banks and scales.
TEST(DramHbm, AStreamThatNeverRestsIsRemembered) {
  const auto hbm = memory("hbm2-2000");
  constexpr std::uint64_t kTransfers = 2500;
  walk(*hbm, 1, kTransfers, false);
  EXPECT_GT(hbm->bursts_remembered(), hbm->traffic().total() / 2);
}

TEST(DramHbm, ForgettingChangesNoCycles) {
  const auto forgetful = memory("hbm2-2000");
  const auto one_by_one = memory("hbm2-2000");
  forgetful->remember_at_most(200'000);
  one_by_one->remember_streams(false);
  EXPECT_EQ(walk(*forgetful, 3, 400), walk(*one_by_one, 3, 400));
  EXPECT_EQ(counted(*forgetful), counted(*one_by_one));
}

// What nobody remembers any more is simulated, and remembered anew when nobody listens.
TEST(DramHbm, ListeningForAWhileChangesNoCycles) {
  const auto play_twice = [](bool listen) {
    CommandRecorder recorder;
    const auto hbm = memory("hbm2-2000");
    std::vector<Cycle> answers;
    const auto tiles = [&](Cycle issue) {
      for (std::uint64_t n = 0; n < 6; ++n) {
        const TransferRows rows{
            .first = n * 4096, .stride = 64, .count = 64, .length = 64, .width = 8};
        const Ticket ticket = hbm->start({.unit = Unit::LoadM, .issue = issue + n}, rows);
        if (n == 5) answers.push_back(hbm->complete(ticket));
      }
    };
    tiles(0);
    tiles(1000);
    if (listen) hbm->set_listener(&recorder);
    tiles(2000);
    hbm->set_listener(nullptr);
    tiles(3000);
    return answers;
  };
  EXPECT_EQ(play_twice(true), play_twice(false));
}

TEST(DramHbm, RememberingStreamsChangesNoProgramsCycles) {
  std::uint64_t remembered_bursts = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const auto run = [&](bool remember) {
      TimedRunOptions options = run_with("pipelined");
      options.settings = random_program_settings(seed % 2 == 1);
      options.dialect = *Dialect::parse("plena+moe+bmv+minmax");
      options.make_memory = [&] {
        auto hbm = memory(seed % 3 == 0 ? "hbm3-6400" : "hbm2-2000");
        hbm->remember_streams(remember);
        return hbm;
      };
      options.listen = false;  // commands that someone listens to are simulated
      return timed_run(random_program(seed, options.settings), options);
    };
    const TimedRun remembered = run(true);
    const TimedRun plain = run(false);
    EXPECT_EQ(remembered.total, plain.total) << "program " << seed;
    EXPECT_EQ(counted(remembered.timing->hbm()), counted(plain.timing->hbm()))
        << "program " << seed;
    remembered_bursts += dynamic_cast<const DramHbm&>(remembered.timing->hbm()).bursts_remembered();
  }
  EXPECT_GT(remembered_bursts, 0U);
}

// The closed form of the ideal memory is the one of the controller's room, burst by burst.
TEST(DramHbm, TheIdealMemoryIsTheControllersIdealMemory) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    TimedRunOptions options = run_with("pipelined");
    options.settings = random_program_settings(seed % 2 == 1);
    options.dialect = *Dialect::parse("plena+moe+bmv+minmax");
    const auto words = random_program(seed, options.settings);
    const TimedRun closed = timed_run(words, options);
    options.make_memory = [] { return memory("ideal"); };
    const TimedRun by_bursts = timed_run(words, options);
    EXPECT_EQ(closed.issues, by_bursts.issues) << "program " << seed;
    EXPECT_EQ(closed.total, by_bursts.total) << "program " << seed;
  }
}

// timing.md: within 5 % with a DRAM preset, where a different order of bursts can be luckier.
TEST(DramHbm, ProfilesBoundEachOtherWithinFivePercent) {
  for (const char* preset : {"hbm2-2000", "hbm3-6400", "hbm2-1600", "hbm2-2400"}) {
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      const auto total = [&](const char* profile) {
        TimedRunOptions options = run_with(profile);
        options.settings = random_program_settings(seed % 2 == 1);
        options.dialect = *Dialect::parse("plena+moe+bmv+minmax");
        options.make_memory = [&] { return memory(preset); };
        const TimedRun run = timed_run(random_program(seed, options.settings), options);
        std::uint64_t sum = 0;
        for (const InstructionAccount& account : run.timing->model().accounts())
          sum += account.causes.total();
        EXPECT_EQ(sum, run.total);
        return static_cast<double>(run.total);
      };
      const double pipelined = total("pipelined");
      EXPECT_GE(total("serial") * 1.05, pipelined) << preset << " program " << seed;
      EXPECT_GE(pipelined * 1.05, total("ideal")) << preset << " program " << seed;
    }
  }
}

TEST(HbmChoice, TheCommandLinesPresetTakesTheProfilesPlace) {
  TimingProfile profile = *load_profile("pipelined");
  EXPECT_EQ(profile.hbm.preset.name, "hbm2-2000");
  EXPECT_TRUE(choose_hbm_preset(profile, "hbm3-6400"));
  EXPECT_EQ(profile.hbm.preset.name, "hbm3-6400");
  EXPECT_NE(dynamic_cast<DramHbm*>(make_hbm(profile)->get()), nullptr);
  EXPECT_FALSE(choose_hbm_preset(profile, "hbm4"));
  TimingProfile emulator = *load_profile("plena-rs");
  EXPECT_FALSE(choose_hbm_preset(emulator, "ideal"));
}

}  // namespace
}  // namespace plena
