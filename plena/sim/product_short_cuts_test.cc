// Products of tiles that were never decoded, and column blocks that were computed ahead, are those
// of the plain engine, state for state: random programs that load weights, multiply, write the rows
// and tiles of a sweep in its middle, and store over the bytes that Matrix SRAM still shows.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <span>

#include <gtest/gtest.h>

#include "plena/sim/rs_fixture.h"
#include "plena/sim/tile_cache.h"
#include "plena/sim/workers.h"

namespace plena {
namespace {

constexpr std::uint32_t kSide = 64;
constexpr std::uint32_t kTileElements = kSide * kSide;
constexpr std::uint32_t kScales = 1 << 15;  // byte of HBM
constexpr std::uint32_t kHbmBytes = 1 << 16;
constexpr std::uint32_t kRows = 32;

Settings settings_of(const DataType& weights) {
  Settings settings = tiny_settings();
  settings.mlen = settings.vlen = kSide;
  settings.hlen = 16;
  settings.blen = 4;
  settings.matrix_sram_size = 3 * kSide;
  settings.vector_sram_size = kRows;
  settings.hbm_m_prefetch_amount = kSide;
  settings.hbm_size = kHbmBytes;
  settings.hbm_m_weight_type = settings.hbm_m_kv_type = weights;
  settings.hbm_v_act_type = settings.hbm_v_kv_type = weights;
  return settings;
}

class RandomProgram {
 public:
  explicit RandomProgram(unsigned seed) : random_(seed) {
    set(9, kScales);
    words_.push_back(encode({.op = Op::C_SET_SCALE_REG, .rd = 9}));
    set(9, kSide);
    words_.push_back(encode({.op = Op::C_SET_STRIDE_REG, .rd = 9}));
    words_.push_back(encode({.op = Op::C_SET_ADDR_REG, .rd = 1, .rs1 = 0, .rs2 = 0}));
  }

  std::vector<std::uint32_t> words(int steps) {
    for (int i = 0; i < steps; ++i) emit_step();
    return std::move(words_);
  }

 private:
  std::uint32_t pick(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }
  void set(std::uint8_t reg, std::uint32_t value) {
    words_.push_back(encode({.op = Op::S_ADDI_INT, .rd = reg, .rs1 = 0, .imm = value}));
  }

  void emit_step() {
    const std::uint32_t tile = pick(3) * kTileElements;
    const std::uint32_t row = pick(kRows - 4) * kSide;
    set(1, tile);
    set(2, row);
    set(3, pick(12) * (kTileElements / 4));  // of HBM: tiles that overlap
    const bool strided = pick(2) != 0;
    switch (pick(15)) {
      case 13:
      case 14:
        return emit_many_rows();
      case 10:
        return emit_row_chains();
      case 11:
      case 12:
        return emit_block_chains(pick(2) != 0);
      case 8:
      case 9:
        return emit_sweep(tile, row, pick(2) != 0);
      case 0:
      case 1:
        return add({.op = Op::H_PREFETCH_M, .rd = 1, .rs1 = 3, .rs2 = 1, .order = strided});
      case 2:
        return add({.op = Op::H_STORE_V, .rd = 2, .rs1 = 3, .rs2 = 1, .order = strided});
      case 3:
        add({.op = Op::M_MV, .rs1 = 2, .rs2 = 1});
        return add({.op = Op::M_MV_WO, .rd = 2});
      case 4:
        add({.op = Op::M_TMM, .rs1 = 2, .rs2 = 1});
        return add({.op = Op::M_MM_WO, .rd = 2});
      default:
        add({.op = Op::M_TMV, .rs1 = 2, .rs2 = 1});
        if (pick(3) != 0) add({.op = Op::M_MV_WO, .rd = 2});
    }
  }
  // Column blocks of a tile from a random one on, two or to the end; twice, with luck.
  void emit_sweep(std::uint32_t tile, std::uint32_t row, bool transposed) {
    const std::uint32_t first = pick(3) == 0 ? pick(16) : 0;
    const std::uint32_t end = pick(3) == 0 ? std::min(first + 2, 16U) : 16;
    const std::uint32_t pitch = transposed ? 4 * kSide : 4;
    for (std::uint32_t pass = 0; pass < 2; ++pass) {
      for (std::uint32_t block = first; block < end; ++block) {
        if (pick(40) == 0) break;
        set(4, tile + block * pitch);
        add(transposed ? Instruction{.op = Op::M_TMM, .rs1 = 2, .rs2 = 4}
                       : Instruction{.op = Op::M_MM, .rs1 = 4, .rs2 = 2});
        if (pick(3) == 0) emit_interruption(row);
      }
    }
  }
  // Sums over tiles, written out one after the other: some over rows that others still read.
  void emit_row_chains() {
    const std::uint32_t chains = 1 + pick(12), terms = 1 + pick(4);
    std::uint32_t out = pick(kRows) * kSide;
    for (std::uint32_t chain = 0; chain < chains; ++chain) {
      for (std::uint32_t term = 0; term < terms; ++term) {
        if (pick(2) != 0) {
          set(1, pick(3) * kTileElements);
          set(3, pick(12) * (kTileElements / 4));
          add({.op = Op::H_PREFETCH_M, .rd = 1, .rs1 = 3, .rs2 = 1, .order = pick(4) == 0});
        }
        set(2, pick(kRows) * kSide);
        add({.op = Op::M_TMV, .rs1 = 2, .rs2 = 1});
        if (pick(16) == 0) emit_interruption(out);
      }
      set(2, out);
      if (pick(10) != 0) add({.op = Op::M_MV_WO, .rd = 2});
      out = (out + (pick(8) == 0 ? pick(kRows) : 1) * kSide) % (kRows * kSide);
      if (pick(20) == 0) emit_interruption(out);
    }
  }
  // Sums of column blocks over tiles, most of them as the block before lets expect.
  void emit_block_chains(bool transposed) {
    const std::uint32_t terms = 1 + pick(3);
    const std::uint32_t pitch = transposed ? 4 * kSide : 4;
    const std::uint32_t strides = pick(4);  // of the rows written out; 0 is no stride
    const std::uint8_t stride_register = strides == 0 ? 0 : 6;
    for (std::uint32_t pass = 0; pass < 3; ++pass) {
      const std::uint32_t row = pick(kRows - 4) * kSide, out = pick(kRows - 4) * kSide;
      for (std::uint32_t block = 0; block < 16; ++block) {
        for (std::uint32_t term = 0; term < terms; ++term) {
          set(4, term * kTileElements + (pick(60) == 0 ? pick(16) : block) * pitch);
          set(2, (row + (pick(60) == 0 ? 4 : term) * kSide) % ((kRows - 4) * kSide));
          add(transposed ? Instruction{.op = Op::M_TMM, .rs1 = 2, .rs2 = 4}
                         : Instruction{.op = Op::M_MM, .rs1 = 4, .rs2 = 2});
          if (pick(80) == 0) emit_interruption(row);
        }
        set(5, out + (pick(60) == 0 ? pick(16) : block) * 4);
        set(6, pick(60) == 0 ? pick(4) : strides);
        if (pick(60) != 0) add({.op = Op::M_MM_WO, .rd = 5, .rs1 = stride_register});
      }
    }
  }
  // The same column blocks for rows that follow each other, as a prompt has them: 16 rows or 12.
  void emit_many_rows() {
    const std::uint32_t terms = 1 + pick(3), row_blocks = 3 + pick(2);
    const std::uint32_t in = pick(2) * 16 * kSide, out = (16 * kSide) - in;
    for (std::uint32_t tile = 0; tile < terms; ++tile) {
      set(1, tile * kTileElements);
      set(3, pick(12) * (kTileElements / 4));
      add({.op = Op::H_PREFETCH_M, .rd = 1, .rs1 = 3, .rs2 = 1, .order = pick(4) == 0});
    }
    for (std::uint32_t rows = 0; rows < row_blocks * 4; rows += 4) {
      for (std::uint32_t block = 0; block < 16; ++block) {
        for (std::uint32_t term = 0; term < terms; ++term) {
          set(4, term * kTileElements + block * 4 * kSide);
          set(2, in + (pick(400) == 0 ? 0 : rows) * kSide);
          add({.op = Op::M_TMM, .rs1 = 2, .rs2 = 4});
        }
        set(5, out + rows * kSide + block * 4);
        add({.op = Op::M_MM_WO, .rd = 5});
        if (pick(200) == 0) emit_interruption(in);
      }
    }
  }
  // Writes near the rows of a sweep, its tile, or nothing of either.
  void emit_interruption(std::uint32_t row) {
    set(5, row + pick(5) * kSide);
    switch (pick(6)) {
      case 0:
        return add({.op = Op::V_ADD_VV, .rd = 5, .rs1 = 5, .rs2 = 2});
      case 1:
        return add({.op = Op::H_PREFETCH_M, .rd = 1, .rs1 = 3, .rs2 = 1});
      case 2:
        return add({.op = Op::H_PREFETCH_V, .rd = 5, .rs1 = 3, .rs2 = 1});
      default:
        set(5, pick(kRows) * kSide);
        return add({.op = Op::M_MM_WO, .rd = 5});
    }
  }

  void add(const Instruction& i) { words_.push_back(encode(i)); }

  std::mt19937 random_;
  std::vector<std::uint32_t> words_;
};

// Weights and rows of ordinary size; every eighth seed has some that no short cut may take.
void fill(Machine& machine, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::uint8_t> bytes(kHbmBytes);
  const bool plain = !machine.settings.hbm_m_weight_type.is_mx();
  for (std::uint32_t i = 0; i < kHbmBytes; ++i) {
    const auto byte = static_cast<std::uint8_t>(random());
    bytes[i] = i >= kScales && !plain ? 120 + byte % 8 : byte & 0xBE;
    if (seed % 8 == 7 && random() % 2000 == 0) bytes[i] = 0xFF;
  }
  ASSERT_TRUE(machine.write_elements(MemoryKind::Hbm, 0, bytes));
  std::vector<std::uint8_t> rows(kRows * kSide * 2);
  for (std::size_t i = 0; i < rows.size(); i += 2) {
    const std::uint16_t bits = f32_to_bf16(static_cast<float>(random() % 64) / 64 - 0.5F);
    std::memcpy(&rows[i], &bits, 2);
  }
  ASSERT_TRUE(machine.write_elements(MemoryKind::Vram, 0, rows));
}

std::uint64_t run_past_traps(Machine& machine, const PreparedProgram& program,
                             const RunOptions& options) {
  std::uint64_t traps = 0;
  while (run(machine, program, options).trap) {
    ++traps;
    ++machine.pc;
  }
  return traps;
}

// Bit for bit; a NaN's sign is nobody's: a write-out gives it the one of semantics 4.1.
bool same_sums(std::span<const float> a, std::span<const float> b) {
  return std::ranges::equal(a, b, [](float x, float y) {
    return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y) ||
           (std::isnan(x) && std::isnan(y));
  });
}

class ProductShortCuts : public testing::TestWithParam<const char*> {};

TEST_P(ProductShortCuts, GiveTheStateOfThePlainEngine) {
  const Settings settings = settings_of(*DataType::parse(GetParam()));
  const Dialect dialect = *Dialect::parse("plena+wostride");
  for (unsigned seed = 0; seed < 24; ++seed) {
    const auto prepared = prepare(RandomProgram(seed).words(150), settings, dialect);
    ASSERT_TRUE(prepared) << prepared.error().values;
    const auto& program = *prepared;
    Machine plain = std::move(*Machine::create(settings));
    Machine quick = std::move(*Machine::create(settings));
    fill(plain, seed);
    fill(quick, seed);
    TileCache cache(seed % 3 * kTileElements * 2);  // no tile, one, two
    constexpr unsigned kThreads[] = {1, 2, 3, 8};
    Workers workers(kThreads[seed % 4], 0);

    const auto traps = run_past_traps(plain, *program, {.fuse = false});
    EXPECT_EQ(run_past_traps(quick, *program,
                             {.tile_cache = seed % 3 ? &cache : nullptr,
                              .workers = seed % 5 ? &workers : nullptr}),
              traps);

    EXPECT_EQ(quick.retired, plain.retired);
    EXPECT_TRUE(quick.vram == plain.vram);
    EXPECT_TRUE(quick.mram == plain.mram);
    EXPECT_TRUE(quick.hbm == plain.hbm);
    EXPECT_TRUE(same_sums(quick.array.block, plain.array.block));
    EXPECT_TRUE(same_sums(quick.array.row, plain.array.row));
    if (testing::Test::HasFailure()) FAIL() << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ProductShortCuts,
                         testing::Values("mxfp8_e4m3", "mxfp8_e4m3:block32", "bf16", "mxint8"),
                         [](const auto& test) { return "Type" + std::to_string(test.index); });

}  // namespace
}  // namespace plena
