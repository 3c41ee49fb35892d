#include "plena/timing/testing/random_program.h"

#include <random>

#include "plena/isa/encoding.h"

namespace plena {

namespace {

constexpr std::uint32_t kRows = 6;       // first rows of Vector SRAM that addresses name
constexpr std::uint32_t kTiles = 3;      // of Matrix SRAM
constexpr std::uint32_t kEntries = 40;   // of INT_MEM and FP_MEM
constexpr std::uint32_t kHbmRows = 12;   // offsets of transfers, in rows
constexpr std::uint32_t kMostTrips = 3;  // of a loop
constexpr std::uint32_t kDeepestLoop = 3;

// What registers are for; gp0 is 0 and everything else scratch.
constexpr std::uint8_t kRowRegisters[] = {1, 2, 3, 4};
constexpr std::uint8_t kTileColumn = 5;  // tile + c, c a multiple of HLEN (so of BLEN too)
constexpr std::uint8_t kTileRow = 6;     // tile + r·MLEN, likewise
constexpr std::uint8_t kTile = 7;
constexpr std::uint8_t kEntry = 8;
constexpr std::uint8_t kOffset = 9;
constexpr std::uint8_t kScratch[] = {10, 11};
constexpr std::uint8_t kFirstCounter = 12;

class Maker {
 public:
  Maker(std::uint64_t seed, const Settings& settings) : random_(seed), s_(settings) {}

  std::vector<std::uint32_t> make() {
    set_up();
    const std::uint32_t length = 20 + below(60);
    for (std::uint32_t n = 0; n < length; ++n) anything();
    return std::move(words_);
  }

 private:
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }
  bool one_in(std::uint32_t n) { return below(n) == 0; }
  std::uint8_t row() { return kRowRegisters[below(4)]; }
  std::uint8_t fp() { return static_cast<std::uint8_t>(below(8)); }
  std::uint8_t scratch() { return kScratch[below(2)]; }
  std::uint8_t flag() { return static_cast<std::uint8_t>(below(2)); }

  void emit(const Instruction& instruction) { words_.push_back(encode(instruction)); }
  void set(std::uint8_t gp, std::uint32_t value) {
    emit({.op = Op::S_ADDI_INT, .rd = gp, .imm = value});
  }

  void set_up() {
    for (const std::uint8_t gp : kRowRegisters) new_address(gp);
    for (const std::uint8_t gp : {kTileColumn, kTileRow, kTile, kEntry, kOffset}) new_address(gp);
    emit({.op = Op::C_SET_ADDR_REG, .rd = 1});
    set(kScratch[0], 8 * s_.vlen);
    emit({.op = Op::C_SET_ADDR_REG, .rd = 2, .rs2 = kScratch[0]});
    emit({.op = Op::C_SET_STRIDE_REG, .rd = kScratch[0]});
    set(kScratch[1], one_in(2) ? 1U << 14 : 3 * s_.vlen);  // apart from the elements, or not
    emit({.op = Op::C_SET_SCALE_REG, .rd = kScratch[1]});
  }

  void new_address(std::uint8_t gp) {
    const std::uint32_t tile = below(kTiles) * s_.mlen * s_.mlen;
    const std::uint32_t in_tile = below(s_.mlen / s_.hlen) * s_.hlen;
    switch (gp) {
      case kTileColumn:
        return set(gp, tile + in_tile);
      case kTileRow:
        return set(gp, tile + in_tile * s_.mlen);
      case kTile:
        return set(gp, tile);
      case kEntry:
        return set(gp, below(kEntries));
      case kOffset:
        return set(gp, below(kHbmRows) * 8);
      default:
        return set(gp, below(kRows) * s_.vlen);
    }
  }

  void anything() {
    switch (below(14)) {
      case 0:
        return new_address(static_cast<std::uint8_t>(1 + below(9)));
      case 1:
      case 2:
        return integer();
      case 3:
      case 4:
        return scalar_fp();
      case 5:
        return entries();
      case 6:
      case 7:
      case 8:
        return vector();
      case 9:
      case 10:
        return products();
      case 11:
      case 12:
        return transfer();
      default:
        return one_in(2) ? loop() : special();
    }
  }

  void integer() {
    constexpr Op kOps[] = {Op::S_ADD_INT, Op::S_SUB_INT, Op::S_MUL_INT, Op::S_ADDI_INT};
    const Op op = kOps[below(4)];
    const auto any = [&] { return static_cast<std::uint8_t>(below(16)); };
    Instruction i{.op = op, .rd = one_in(8) ? std::uint8_t{0} : scratch(), .rs1 = any()};
    if (op == Op::S_ADDI_INT) {
      i.imm = below(100);
    } else {
      i.rs2 = any();
    }
    emit(i);
  }

  void scalar_fp() {
    constexpr Op kTwo[] = {Op::S_ADD_FP, Op::S_SUB_FP, Op::S_MUL_FP, Op::S_MAX_FP};
    constexpr Op kOne[] = {Op::S_EXP_FP, Op::S_RECI_FP, Op::S_SQRT_FP};
    if (one_in(2)) {
      emit({.op = kTwo[below(4)], .rd = fp(), .rs1 = fp(), .rs2 = fp()});
    } else {
      emit({.op = kOne[below(3)], .rd = fp(), .rs1 = fp()});
    }
  }

  void entries() {
    const std::uint32_t imm = below(kEntries);
    switch (below(6)) {
      case 0:
        return emit({.op = Op::S_LD_FP, .rd = fp(), .rs1 = kEntry, .imm = imm});
      case 1:
        return emit({.op = Op::S_ST_FP, .rd = fp(), .rs1 = kEntry, .imm = imm});
      case 2:
        return emit({.op = Op::S_LD_INT, .rd = scratch(), .rs1 = kEntry, .imm = imm});
      case 3:
        return emit({.op = Op::S_ST_INT, .rd = scratch(), .rs1 = kEntry, .imm = imm});
      case 4:
        return emit({.op = Op::S_MAP_V_FP, .rd = row(), .rs1 = kEntry, .imm = imm});
      default:
        return emit(
            {.op = Op::V_TOPK, .rd = kEntry, .rs1 = row(), .rs2 = kEntry, .select = flag()});
    }
  }

  void vector() {
    constexpr Op kTwoRows[] = {Op::V_ADD_VV, Op::V_SUB_VV, Op::V_MUL_VV};
    constexpr Op kScalar[] = {Op::V_ADD_VF, Op::V_MUL_VF, Op::V_MAX_VF, Op::V_MIN_VF};
    constexpr Op kAlone[] = {Op::V_EXP_V, Op::V_RECI_V};
    switch (below(5)) {
      case 0:
        return emit(
            {.op = kTwoRows[below(3)], .rd = row(), .rs1 = row(), .rs2 = row(), .select = flag()});
      case 1:
        return emit(
            {.op = kScalar[below(4)], .rd = row(), .rs1 = row(), .rs2 = fp(), .select = flag()});
      case 2:
        return emit({.op = kAlone[below(2)], .rd = row(), .rs1 = row(), .select = flag()});
      case 3:
        return emit({.op = Op::V_RED_SUM, .rd = fp(), .rs1 = row()});
      default:
        return emit({.op = Op::V_RED_MAX, .rd = fp(), .rs1 = row(), .select = flag()});
    }
  }

  // Computes into one shape and its write-out, with other things between them.
  void products() {
    const std::uint32_t shape = below(4);
    const std::uint32_t computes = below(4);
    for (std::uint32_t n = 0; n < computes; ++n) {
      const bool transposed = one_in(2);
      if (shape == 0) {
        emit(transposed ? Instruction{.op = Op::M_TMM, .rs1 = row(), .rs2 = kTileRow}
                        : Instruction{.op = Op::M_MM, .rs1 = kTileColumn, .rs2 = row()});
      } else if (shape == 1) {
        emit({.op = transposed ? Op::M_TMV : Op::M_MV, .rs1 = row(), .rs2 = kTile});
      } else if (shape == 2) {
        emit({.op = transposed ? Op::M_BTMM : Op::M_BMM,
              .rs1 = transposed ? kTileColumn : kTileRow,
              .rs2 = row()});
      } else {
        emit({.op = transposed ? Op::M_BTMV : Op::M_BMV,
              .rd = 0,
              .rs1 = transposed ? kTileColumn : kTileRow,
              .rs2 = row()});
      }
      if (one_in(3)) vector();
      if (one_in(4)) integer();
      if (one_in(6)) transfer();
    }
    const std::uint32_t window = below(s_.vlen / s_.mlen) * s_.mlen;
    const std::uint32_t lane = below(s_.vlen / s_.blen) * s_.blen;
    switch (shape) {
      case 0:
        return emit({.op = Op::M_MM_WO, .rd = row(), .imm = lane});
      case 1:
        return emit({.op = Op::M_MV_WO, .rd = row(), .imm = window});
      case 2:
        return emit({.op = Op::M_BMM_WO, .rd = row(), .imm = window});
      default:
        return emit({.op = Op::M_BMV_WO, .rd = row(), .imm = window});
    }
  }

  void transfer() {
    const auto base = static_cast<std::uint8_t>(1 + below(2));
    if (one_in(3)) {
      return emit({.op = Op::H_PREFETCH_M,
                   .rd = kTile,
                   .rs1 = kOffset,
                   .rs2 = base,
                   .select = flag(),
                   .order = flag()});
    }
    emit({.op = one_in(2) ? Op::H_PREFETCH_V : Op::H_STORE_V,
          .rd = row(),
          .rs1 = kOffset,
          .rs2 = base,
          .select = flag(),
          .order = flag()});
  }

  void special() {
    set(kScratch[0], below(4) * 8 * s_.vlen);
    if (one_in(2)) vector();
    switch (below(3)) {
      case 0:
        return emit({.op = Op::C_SET_ADDR_REG, .rd = 1, .rs1 = 0, .rs2 = kScratch[0]});
      case 1:
        return emit({.op = Op::C_SET_STRIDE_REG, .rd = kScratch[0]});
      default:
        return emit({.op = Op::C_SET_V_MASK_REG, .rd = scratch()});
    }
  }

  void loop() {
    if (depth_ == kDeepestLoop) return;
    const auto counter = static_cast<std::uint8_t>(kFirstCounter + depth_);
    ++depth_;
    emit({.op = Op::C_LOOP_START, .rd = counter, .imm = 1 + below(kMostTrips)});
    const std::uint32_t length = below(6);
    for (std::uint32_t n = 0; n < length; ++n) anything();
    if (one_in(4)) emit({.op = Op::S_ADD_INT, .rd = counter, .rs1 = counter, .rs2 = 0});
    emit({.op = Op::C_LOOP_END, .rd = counter});
    --depth_;
  }

  std::mt19937_64 random_;
  const Settings& s_;
  std::vector<std::uint32_t> words_;
  std::uint32_t depth_ = 0;
};

}  // namespace

Settings random_program_settings(bool wide) {
  Settings s;
  s.mlen = 16;
  s.blen = 4;
  s.hlen = 8;
  s.vlen = wide ? 32 : 16;
  s.matrix_sram_size = (kTiles + 1) * s.mlen;
  s.vector_sram_size = 64;
  s.hbm_size = 1U << 20;
  s.hbm_m_prefetch_amount = 16;
  s.hbm_v_prefetch_amount = 3;
  s.hbm_v_writeback_amount = 2;
  s.int_sram_depth = 128;
  s.fp_sram_depth = 128;
  s.hbm_v_kv_type = DataType::plain(kBf16);
  s.hbm_m_kv_type = DataType::mx(kE2M1, 16);
  return s;
}

std::vector<std::uint32_t> random_program(std::uint64_t seed, const Settings& settings) {
  return Maker(seed, settings).make();
}

}  // namespace plena
