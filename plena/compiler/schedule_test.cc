// The scheduling pass on blocks whose best order follows from arithmetic on paper, and on random
// programs, which leave the same bits in every memory.
#include "plena/compiler/schedule.h"

#include <algorithm>
#include <cstring>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plena/compiler/emitter.h"
#include "plena/sim/engine.h"
#include "plena/timing/testing/random_program.h"

namespace plena {
namespace {

using ::testing::ElementsAre;

std::vector<Op> ops_of(const Listing& listing) {
  std::vector<Op> ops;
  for (const Line& line : listing) {
    if (line.is_code()) ops.push_back(line.instruction.op);
  }
  return ops;
}

Listing scheduled(Listing listing) {
  const Settings settings;
  const Dialect dialect;
  return schedule(listing, {.settings = settings, .dialect = dialect}).value();
}

// As written the second load waits for the first sum: 8 cycles a load, 8 a sum. Side by side they
// take one cycle more than one chain.
TEST(Schedule, LoadsWhatTwoChainsNeedBeforeEitherGoesOn) {
  Emitter e;
  for (std::uint8_t chain = 1; chain <= 2; ++chain) {
    e.emit(Op::S_LD_FP, {Fp{chain}, Gp{0}, std::uint64_t{chain}});
    e.emit(Op::S_ADD_FP, {Fp{chain}, Fp{chain}, Fp{chain}});
    e.emit(Op::S_ST_FP, {Fp{chain}, Gp{0}, std::uint64_t{10} + chain});
  }

  EXPECT_THAT(
      ops_of(scheduled(std::move(e).take_listing().value())),
      ElementsAre(Op::S_LD_FP, Op::S_LD_FP, Op::S_ADD_FP, Op::S_ADD_FP, Op::S_ST_FP, Op::S_ST_FP));
}

// The same with one register for both: only renaming lets the second load go first.
TEST(Schedule, RenamesARegisterThatServesTwice) {
  Emitter e;
  for (std::uint64_t chain = 1; chain <= 2; ++chain) {
    e.emit(Op::S_LD_FP, {Fp{1}, Gp{0}, chain});
    e.emit(Op::S_ADD_FP, {Fp{1}, Fp{1}, Fp{1}});
    e.emit(Op::S_ST_FP, {Fp{1}, Gp{0}, 10 + chain});
  }

  EXPECT_THAT(
      ops_of(scheduled(std::move(e).take_listing().value())),
      ElementsAre(Op::S_LD_FP, Op::S_LD_FP, Op::S_ADD_FP, Op::S_ADD_FP, Op::S_ST_FP, Op::S_ST_FP));
}

// A load from an entry that a store before it writes stays behind it.
TEST(Schedule, KeepsALoadBehindTheStoreItReads) {
  Emitter e;
  e.emit(Op::S_LD_FP, {Fp{1}, Gp{0}, std::uint64_t{1}});
  e.emit(Op::S_ST_FP, {Fp{1}, Gp{0}, std::uint64_t{2}});
  e.emit(Op::S_LD_FP, {Fp{2}, Gp{0}, std::uint64_t{2}});
  e.emit(Op::S_ST_FP, {Fp{2}, Gp{0}, std::uint64_t{3}});

  EXPECT_THAT(ops_of(scheduled(std::move(e).take_listing().value())),
              ElementsAre(Op::S_LD_FP, Op::S_ST_FP, Op::S_LD_FP, Op::S_ST_FP));
}

// Alone a turn is shortest with the product first. But results of integer instructions take three
// cycles: the next product would wait for the pointer that moved last, and does not where it is the
// second instruction.
TEST(Schedule, PutsTheCounterBeforeAProductThatWaitsForTheTurnBefore) {
  Emitter e;
  HeldGp weights(e, "weights");
  HeldGp tile(e, "tile");
  HeldGp last(e, "last tile");
  e.set(weights, 0);
  e.set(tile, 0);
  e.set(last, std::uint64_t{3} * 64 * 64);
  {
    SweepLoop tiles(e, tile, last, "tiles");
    e.emit(Op::M_MM, {tile, weights});
    e.advance(tile, std::uint64_t{64} * 64);
    e.advance(weights, 512);
  }
  e.emit(Op::M_MM_WO, {Gp{0}, std::uint64_t{0}});

  const std::vector<Op> ops = ops_of(scheduled(std::move(e).take_listing().value()));
  const auto start = std::ranges::find(ops, Op::C_LOOP_START);
  EXPECT_THAT(std::vector<Op>(start, ops.end()),
              ElementsAre(Op::C_LOOP_START, Op::S_SUB_INT, Op::M_MM, Op::S_ADDI_INT, Op::S_ADDI_INT,
                          Op::C_LOOP_END, Op::M_MM_WO));
}

// Chains of ten exponentials, 70 cycles or more, are longer than the way of a sum to its store and
// the load behind it, but not than that to the tile's arrival in Matrix SRAM, behind the block.
TEST(Schedule, HurriesWhatLoadsATileThatWasJustStored) {
  constexpr std::uint8_t kChains = 10;
  constexpr int kLength = 10;
  constexpr Gp kKey{kChains + 1};
  const AddressRegister cache{1};
  Emitter e;
  for (std::uint8_t chain = 1; chain <= kChains; ++chain) {
    e.set(Gp{chain}, std::uint64_t{chain} * 64);
    for (int i = 0; i < kLength; ++i) {
      e.emit(Op::V_EXP_V, {Gp{chain}, Gp{chain}, std::uint64_t{0}});
    }
  }
  e.set(kKey, std::uint64_t{32} * 64);
  e.emit(Op::V_ADD_VV, {kKey, kKey, kKey, std::uint64_t{0}});
  e.emit(Op::H_STORE_V, {kKey, Gp{0}, cache, std::uint64_t{0}, std::uint64_t{1}});
  e.emit(Op::H_PREFETCH_M, {Gp{0}, Gp{0}, cache, std::uint64_t{0}, std::uint64_t{1}});

  const std::vector<Op> ops = ops_of(scheduled(std::move(e).take_listing().value()));
  const auto sum = std::ranges::find(ops, Op::V_ADD_VV);
  EXPECT_LT(std::count(ops.begin(), sum, Op::V_EXP_V), kChains);
}

void fill(Machine& machine, unsigned seed) {
  std::mt19937 random(seed);
  for (SparseMemory* memory : {&machine.hbm, &machine.vram, &machine.mram}) {
    const std::size_t bytes = std::min<std::size_t>(memory->size(), 4096);
    std::uint8_t* to = memory->writable(0, bytes);
    for (std::size_t i = 0; i < bytes; ++i) to[i] = static_cast<std::uint8_t>(random() % 120);
  }
}

class ScheduledRandomPrograms : public ::testing::TestWithParam<bool> {};

TEST_P(ScheduledRandomPrograms, LeaveTheSameBits) {
  const Settings settings = random_program_settings(GetParam());
  const Dialect dialect = Dialect::parse("plena+moe+bmv+minmax").value();
  std::size_t moved = 0;
  for (unsigned seed = 0; seed < 150; ++seed) {
    const std::vector<std::uint32_t> words = random_program(seed, settings);
    Listing listing;
    for (const std::uint32_t word : words) {
      listing.push_back({.instruction = decode(word, dialect).value(), .text = {}});
    }
    const auto other = schedule(listing, {.settings = settings, .dialect = dialect});
    ASSERT_TRUE(other) << other.error().render();
    const std::vector<std::uint32_t> reordered = print(*other).program.words;
    moved += reordered != words ? 1 : 0;

    Machine as_written = Machine::create(settings, dialect).value();
    Machine scheduled = Machine::create(settings, dialect).value();
    fill(as_written, seed);
    fill(scheduled, seed);
    const Stop expected = run(as_written, *prepare(words, settings, dialect).value(), {});
    const Stop got = run(scheduled, *prepare(reordered, settings, dialect).value(), {});

    ASSERT_FALSE(expected.trap) << "seed " << seed;
    ASSERT_FALSE(got.trap) << "seed " << seed;
    EXPECT_TRUE(scheduled.vram == as_written.vram) << "seed " << seed;
    EXPECT_TRUE(scheduled.mram == as_written.mram) << "seed " << seed;
    EXPECT_TRUE(scheduled.hbm == as_written.hbm) << "seed " << seed;
    EXPECT_EQ(scheduled.int_mem, as_written.int_mem) << "seed " << seed;
    EXPECT_EQ(scheduled.fp_mem, as_written.fp_mem) << "seed " << seed;
  }
  EXPECT_GT(moved, 100U);
}

INSTANTIATE_TEST_SUITE_P(Rows, ScheduledRandomPrograms, ::testing::Bool());

}  // namespace
}  // namespace plena
