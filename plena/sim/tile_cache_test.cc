// A run with a tile cache and fused pairs is the run without, state for state: random programs that
// load tiles, store over the bytes they come from, load them again and multiply, on several types,
// strides and sizes of cache. What a cache keeps, and when it lets go, on top.
#include "plena/sim/tile_cache.h"

#include <array>
#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "plena/sim/rs_fixture.h"

namespace plena {
namespace {

// Tiles of several granules of write stamps; rows narrower than one.
constexpr std::uint32_t kSide = 32;
constexpr std::uint32_t kTileElements = kSide * kSide;
constexpr std::uint32_t kHbmBytes = 1 << 16;
constexpr std::uint32_t kRows = 160;

Settings settings_of(DataType weights, DataType keys, DataType rows) {
  Settings settings = tiny_settings();
  settings.mlen = settings.vlen = kSide;
  settings.hlen = 8;
  settings.blen = 4;
  settings.matrix_sram_size = 4 * kSide;
  settings.vector_sram_size = kRows;
  settings.hbm_m_prefetch_amount = kSide;
  settings.hbm_size = kHbmBytes;
  settings.hbm_m_weight_type = weights;
  settings.hbm_m_kv_type = keys;
  settings.hbm_v_act_type = rows;
  settings.hbm_v_kv_type = keys;
  return settings;
}

// Where a transfer goes to or comes from in HBM.
struct Place {
  std::uint32_t base, offset, scale, stride;
};

// Words of programs on random operands, most of them within the rules. Few places come again and
// again; bases and scale registers lie so that tensors share scales and not elements, or scales
// are another's elements.
class RandomProgram {
 public:
  explicit RandomProgram(unsigned seed) : random_(seed) {
    for (Place& place : places_) place = random_place();
  }

  std::vector<std::uint32_t> words(int instructions) {
    for (int i = 0; i < instructions; ++i) emit_one();
    return std::move(words_);
  }

 private:
  std::uint32_t pick(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }
  void emit(const Instruction& i) { words_.push_back(encode(i)); }
  void set(std::uint8_t reg, std::uint32_t value) {
    emit({.op = Op::S_ADDI_INT, .rd = reg, .rs1 = 0, .imm = value});
  }

  Place random_place() {
    return {pick(3) * 8192, pick(4) != 0 ? pick(16) * kSide : pick(1000),
            pick(8) == 0 ? 40 : 8192 * (3 + pick(3)), pick(4) == 0 ? pick(100) : pick(4) * 16};
  }

  // gp1: where in the machine.
  void emit_transfer(Op op, std::uint32_t inside) {
    const Place place = pick(5) != 0 ? places_[pick(5)] : random_place();
    set(1, inside);
    set(2, place.offset);
    set(3, place.base);
    set(4, place.scale);
    set(5, place.stride);
    emit({.op = Op::C_SET_ADDR_REG, .rd = 1, .rs1 = 0, .rs2 = 3});
    emit({.op = Op::C_SET_SCALE_REG, .rd = 4});
    emit({.op = Op::C_SET_STRIDE_REG, .rd = 5});
    emit({.op = op,
          .rd = 1,
          .rs1 = 2,
          .rs2 = 1,
          .select = static_cast<std::uint8_t>(pick(3) == 0),
          .order = static_cast<std::uint8_t>(pick(4) == 0)});
  }

  void emit_one() {
    const std::uint32_t tile = pick(4) * kTileElements;
    const std::uint32_t row = pick(16) * kSide;
    const bool transposed = pick(2) != 0;
    switch (pick(9)) {
      case 0:
      case 1:
      case 2:
        return emit_transfer(Op::H_PREFETCH_M, tile);
      case 3:
        return emit_transfer(Op::H_STORE_V, row);
      case 4:
        return emit_transfer(Op::H_PREFETCH_V, row);
      case 5:
        set(6, row);
        set(7, tile);
        emit({.op = transposed ? Op::M_TMV : Op::M_MV, .rs1 = 6, .rs2 = 7});
        return emit_write_out(Op::M_MV_WO, row);
      case 6:
        set(6, row);
        set(7, tile + pick(8) * 4 * (transposed ? kSide : 1));
        emit(transposed ? Instruction{.op = Op::M_TMM, .rs1 = 6, .rs2 = 7}
                        : Instruction{.op = Op::M_MM, .rs1 = 7, .rs2 = 6});
        return emit_write_out(Op::M_MM_WO, row);
      case 7:
        set(6, row);
        set(7, tile + pick(4) * 8 * (transposed ? 1 : kSide));
        emit({.op = transposed ? Op::M_BTMM : Op::M_BMM, .rs1 = 7, .rs2 = 6});
        return emit_write_out(Op::M_BMM_WO, kSide * pick(32));
      default:
        return emit_write_out(pick(2) != 0 ? Op::M_MV_WO : Op::M_MM_WO, row);
    }
  }

  // Most of the time, so that the array is seldom in the way.
  void emit_write_out(Op op, std::uint32_t row) {
    if (pick(8) == 0) return;
    set(6, row);
    emit({.op = op, .rd = 6});
  }

  std::array<Place, 5> places_;
  std::mt19937 random_;
  std::vector<std::uint32_t> words_;
};

void fill(Machine& machine, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::uint8_t> bytes(kHbmBytes);
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random() % 4 == 0 ? 127 : random());
  ASSERT_TRUE(machine.write_elements(MemoryKind::Hbm, 0, bytes));
  std::vector<std::uint8_t> rows(kRows * kSide * 2);
  for (std::size_t i = 0; i < rows.size(); i += 2) {
    const std::uint16_t bits = f32_to_bf16(static_cast<float>(random() % 64) / 8 - 4);
    std::memcpy(&rows[i], &bits, 2);
  }
  ASSERT_TRUE(machine.write_elements(MemoryKind::Vram, 0, rows));
}

// Accumulators may hold NaN, which is not equal to itself.
std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits(values.size());
  std::memcpy(bits.data(), values.data(), values.size() * sizeof(float));
  return bits;
}

void expect_same(const Machine& a, const Machine& b) {
  EXPECT_EQ(a.pc, b.pc);
  EXPECT_EQ(a.retired, b.retired);
  EXPECT_EQ(a.gp, b.gp);
  EXPECT_TRUE(a.vram == b.vram);
  EXPECT_TRUE(a.mram == b.mram);
  EXPECT_TRUE(a.hbm == b.hbm);
  EXPECT_EQ(a.array.shape, b.array.shape);
  EXPECT_EQ(bits_of(a.array.block), bits_of(b.array.block));
  EXPECT_EQ(bits_of(a.array.row), bits_of(b.array.row));
  EXPECT_EQ(bits_of(a.array.heads), bits_of(b.array.heads));
}

// Runs to the end, past whatever traps, and tells where it stopped on the way.
std::vector<std::uint64_t> run_past_traps(Machine& machine, const PreparedProgram& program,
                                          const RunOptions& options) {
  std::vector<std::uint64_t> traps;
  while (true) {
    const Stop stop = run(machine, program, options);
    if (!stop.trap) return traps;
    traps.push_back(machine.pc++);
  }
}

struct TypesCase {
  const char* weights;
  const char* keys;
  const char* rows;
};

class TileCacheOnTypes : public testing::TestWithParam<TypesCase> {};

TEST_P(TileCacheOnTypes, ARunWithACacheIsTheRunWithout) {
  const TypesCase& types = GetParam();
  Settings settings = settings_of(*DataType::parse(types.weights), *DataType::parse(types.keys),
                                  *DataType::parse(types.rows));
  for (unsigned seed = 0; seed < 18; ++seed) {
    settings.hbm_m_prefetch_amount = seed % 4 == 3 ? 2 * kSide : kSide;
    const auto program = *prepare(RandomProgram(seed).words(400), settings, {});
    Machine plain = std::move(*Machine::create(settings));
    Machine cached = std::move(*Machine::create(settings));
    fill(plain, seed);
    fill(cached, seed);
    // No room at all, room for some, room for every tile.
    TileCache cache((seed % 3) * (seed % 3) * 8 * kTileElements * 4);
    for (std::uint8_t pass = 0; pass < 3; ++pass) {
      plain.pc = cached.pc = 0;
      const auto plain_traps = run_past_traps(plain, *program, {.fuse = false});
      const auto cached_traps = run_past_traps(cached, *program, {.tile_cache = &cache});
      EXPECT_EQ(plain_traps, cached_traps);
      expect_same(plain, cached);
      if (testing::Test::HasFailure()) FAIL() << "seed " << seed << ", pass " << int{pass};
      // Somebody else writes HBM between two runs.
      const std::vector<std::uint8_t> bytes(9, static_cast<std::uint8_t>(0x31 + pass));
      const std::uint64_t at = 100 + std::uint64_t{seed} * 20 + pass % 2 * 8192 * 3;
      ASSERT_TRUE(plain.write_elements(MemoryKind::Hbm, at, bytes));
      ASSERT_TRUE(cached.write_elements(MemoryKind::Hbm, at, bytes));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, TileCacheOnTypes,
                         testing::Values(TypesCase{"mxfp8_e4m3", "mxfp8_e4m3", "mxfp8_e4m3"},
                                         TypesCase{"int(4)", "mxfp8_e5m2:block16", "bf16"},
                                         TypesCase{"mxfp4_e2m1", "mxint8", "mxfp6_e2m3"},
                                         TypesCase{"mxfp8_e4m3:block2", "fp32",
                                                   "mxfp8_e4m3:block2"}),
                         [](const auto& test) { return "Types" + std::to_string(test.index); });

// A machine with a tile of ones at HBM 0 and an observer-free way to load it and look.
struct TileBench {
  explicit TileBench(std::size_t cache_bytes) : cache(cache_bytes) {
    settings = settings_of(DataType::plain(kBf16), DataType::plain(kBf16), DataType::plain(kBf16));
    machine = std::move(*Machine::create(settings));
    machine.a_set = 0xFF;
  }

  // Loads the tile at element `first` into `place` and returns what Matrix SRAM then holds there.
  std::uint16_t load(std::uint32_t first, std::uint32_t place = 0) {
    machine.gp[1] = place * kTileElements;
    machine.gp[2] = first;
    const auto program =
        *prepare({encode({.op = Op::H_PREFETCH_M, .rd = 1, .rs1 = 2, .rs2 = 0})}, settings, {});
    machine.pc = 0;
    EXPECT_EQ(run(machine, *program, {.tile_cache = &cache}).reason, StopReason::Halted);
    std::uint16_t bits = 0;
    std::memcpy(&bits, machine.mram.data() + place * kTileElements * 2, 2);
    return bits;
  }
  void write(std::uint64_t byte, std::uint16_t value) {
    std::memcpy(machine.hbm.writable(byte, 2), &value, 2);
  }

  TileCache cache;
  Settings settings;
  Machine machine;
};

TEST(TileCache, KeepsATileOnceHoweverOftenItIsLoaded) {
  TileBench bench(1 << 20);

  bench.load(0);
  bench.load(kTileElements);
  bench.load(0, 2);

  EXPECT_EQ(bench.cache.tile_count(), 2U);
}

TEST(TileCache, NeverHoldsMoreThanItsBytes) {
  TileBench bench(3 * kTileElements * 2 + 1);

  for (std::uint32_t first = 0; first < 1000; ++first) bench.load(first);

  EXPECT_EQ(bench.cache.tile_count(), 3U);
}

TEST(TileCache, SeesAWriteFromOutside) {
  TileBench bench(1 << 20);
  bench.write(0, 0x3F80);
  EXPECT_EQ(bench.load(0), 0x3F80);

  bench.write(0, 0x4000);

  EXPECT_EQ(bench.load(0), 0x4000);
}

// A copy that Matrix SRAM holds from the run before is not made again, unless it was written to.
TEST(TileCache, AWriteToAPlaceBetweenRunsIsUndoneByTheNextLoad) {
  TileBench bench(1 << 20);
  bench.write(0, 0x3F80);
  bench.load(0, 1);
  const std::uint64_t copied = bench.machine.mram.stamps()->now();
  bench.load(0, 1);
  EXPECT_EQ(bench.machine.mram.stamps()->now(), copied);
  const std::uint16_t other = 0x4000;
  std::memcpy(bench.machine.mram.writable(kTileElements * 2, 2), &other, 2);

  EXPECT_EQ(bench.load(0, 1), 0x3F80);
}

TEST(TileCache, ForgetsEverythingOnAnotherMachine) {
  TileBench bench(1 << 20);
  bench.write(0, 0x3F80);
  bench.load(0);

  bench.machine = std::move(*Machine::create(bench.settings));
  bench.machine.a_set = 0xFF;

  EXPECT_EQ(bench.load(0), 0);
}

TEST(TileCache, ForgetsEverythingWhenTheTypesChange) {
  TileBench bench(1 << 20);
  bench.write(0, 0x3F80);
  bench.load(0);

  bench.settings.hbm_m_weight_type = DataType::plain(kFp16);

  EXPECT_EQ(bench.load(0), f32_to_bf16(1.875F));  // 0x3F80 read as fp16
}

TEST(TileCache, SeesThatOneScaleOfTheLastRowWasWritten) {
  TileBench bench(1 << 20);
  bench.settings.hbm_m_weight_type = *DataType::parse("mxfp8_e4m3:block2");
  bench.machine.scale = 4096;
  bench.machine.scale_set = true;
  const std::uint32_t last = kTileElements - 2;
  bench.write(last, 0x3838);  // 1, 1 in E4M3
  bench.write(4096 + last / 2, 127);
  const auto last_of_tile = [&] {
    bench.load(0);
    std::uint16_t bits = 0;
    std::memcpy(&bits, bench.machine.mram.data() + std::size_t{last} * 2, 2);
    return bits;
  };
  EXPECT_EQ(last_of_tile(), f32_to_bf16(1));

  bench.write(4096 + last / 2, 128);

  EXPECT_EQ(last_of_tile(), f32_to_bf16(2));
}

// Loads the same tile twice with a store in between, and looks at both places.
TEST(TileCache, APlaceThatWasLoadedKeepsItsValuesWhenHbmChangesLater) {
  TileBench bench(1 << 20);
  bench.write(0, 0x3F80);
  bench.machine.gp[2] = kTileElements;  // place of the second load
  const auto load = [](std::uint8_t place) {
    return encode({.op = Op::H_PREFETCH_M, .rd = place, .rs1 = 0, .rs2 = 0});
  };
  const auto store = encode({.op = Op::H_STORE_V, .rd = 0, .rs1 = 0, .rs2 = 0});
  const auto program = *prepare({load(0), store, load(2)}, bench.settings, {});

  run(bench.machine, *program, {.tile_cache = &bench.cache});

  std::uint16_t first = 0, second = 1;
  std::memcpy(&first, bench.machine.mram.data(), 2);
  std::memcpy(&second, bench.machine.mram.data() + kTileElements * 2, 2);
  EXPECT_EQ(first, 0x3F80);
  EXPECT_EQ(second, 0);  // row 0 of Vector SRAM
}

// Row 0 of Vector SRAM, zeros at first, goes to HBM, which holds zeros.
TEST(TileCache, AStoreOfTheBytesThatAreThereLeavesTilesCurrent) {
  TileBench bench(1 << 20);
  bench.load(0);
  const auto program =
      *prepare({encode({.op = Op::H_STORE_V, .rd = 0, .rs1 = 0, .rs2 = 0})}, bench.settings, {});
  const auto times_of_store = [&] {
    const std::uint64_t before = bench.machine.hbm.stamps()->now();
    bench.machine.pc = 0;
    EXPECT_EQ(run(bench.machine, *program, {.tile_cache = &bench.cache}).reason,
              StopReason::Halted);
    return bench.machine.hbm.stamps()->now() - before;
  };

  EXPECT_EQ(times_of_store(), 0U);

  const std::uint16_t one = 0x3F80;
  std::memcpy(bench.machine.vram.writable(0, 2), &one, 2);
  EXPECT_EQ(times_of_store(), 1U);
  EXPECT_EQ(bench.load(0), one);
}

}  // namespace
}  // namespace plena
