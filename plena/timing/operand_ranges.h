// Which ranges of the on-chip memories an instruction reads and writes (semantics 6;
// dialect-plena-rs 1 and 2 for the switches that move them).
#pragma once

#include <cstdint>

#include "plena/machine/machine.h"
#include "plena/timing/timed_program.h"

namespace plena {

/// Sizes and dialect switches the ranges depend on, looked up once.
struct RangeRules {
  RangeRules(const Settings& settings, const Dialect& dialect);

  std::uint32_t mlen, blen, hlen, vlen, heads;
  std::uint64_t vram_elements;
  std::uint64_t fp_entries, int_entries;
  std::uint64_t row_step;        // elements between the rows of V that M-type instructions use
  std::uint32_t mv_lanes;        // lanes M_MV_WO writes
  bool wraps;                    // address sums wrap at 32 bits
  bool head_offset_counts_rows;  // M_BMM: the offset in the tile is the row
  bool matrix_first;             // M_MV, M_TMV: rs1 names the matrix
  bool transposed_rows;          // M_TMV takes BLEN rows of the tile

  [[nodiscard]] std::uint64_t sum(std::uint64_t a, std::uint64_t b) const {
    return wraps ? (a + b) & 0xFFFFFFFF : a + b;
  }
};

namespace ranges_detail {

template <class Visitor>
void visit_compute(const TimedInstruction& i, const Machine& m, const RangeRules& g, Visitor& v) {
  const std::uint64_t rs1 = m.gp[i.rs1];
  const std::uint64_t rs2 = m.gp[i.rs2];
  const std::uint64_t tile_elements = std::uint64_t{g.mlen} * g.mlen;
  const auto row_in_tile = [&](std::uint64_t address) {
    return static_cast<std::uint32_t>(address % tile_elements / g.mlen);
  };
  const auto head_row = [&](std::uint64_t address) {
    return g.head_offset_counts_rows ? static_cast<std::uint32_t>(address % tile_elements)
                                     : row_in_tile(address);
  };
  switch (i.op) {
    case Op::M_MM:
      v.vram_read(rs2, g.mlen, g.blen, g.row_step);
      v.tile_read(rs1, 0, g.mlen);
      break;
    case Op::M_TMM:
      v.vram_read(rs1, g.mlen, g.blen, g.row_step);
      v.tile_read(rs2, row_in_tile(rs2), g.blen);
      break;
    case Op::M_BMM:
      v.vram_read(rs2, g.mlen, g.mlen, g.row_step);
      v.tile_read(rs1, head_row(rs1), g.hlen);
      break;
    case Op::M_BTMM:
      v.vram_read(rs2, g.mlen, g.mlen, g.row_step);
      v.tile_read(rs1, 0, g.mlen);
      break;
    case Op::M_BMV:
      v.vram_read(rs2, g.mlen, 1, g.row_step);
      v.tile_read(g.sum(rs1, m.gp[i.rd]), head_row(g.sum(rs1, m.gp[i.rd])), g.hlen);
      break;
    case Op::M_BTMV:
      v.vram_read(rs2, g.mlen, 1, g.row_step);
      v.tile_read(g.sum(rs1, m.gp[i.rd]), 0, g.mlen);
      break;
    case Op::M_MV:
      v.vram_read(g.matrix_first ? rs2 : rs1, g.mlen, 1, g.row_step);
      v.tile_read(g.matrix_first ? rs1 : rs2, 0, g.mlen);
      break;
    default:  // M_TMV
      v.vram_read(g.matrix_first ? rs2 : rs1, g.mlen, 1, g.row_step);
      v.tile_read(g.matrix_first ? rs1 : rs2, 0, g.transposed_rows ? g.blen : g.mlen);
      break;
  }
}

template <class Visitor>
void visit_write_out(const TimedInstruction& i, const Machine& m, const RangeRules& g, Visitor& v) {
  const std::uint64_t to = g.sum(m.gp[i.rd], i.imm);
  switch (i.op) {
    case Op::M_MM_WO: {
      const std::uint64_t stride = i.rs1 == 0 ? 1 : m.gp[i.rs1];  // in rows (semantics 8, wostride)
      v.vram_write(to, g.blen, g.blen, stride * g.row_step);
      break;
    }
    case Op::M_BMM_WO:
      v.vram_write(to, g.mlen, g.heads * g.mlen, g.row_step);
      break;
    case Op::M_MV_WO:
      v.vram_write(to, g.mv_lanes, 1, g.row_step);
      break;
    default:  // M_BMV_WO
      v.vram_write(to, g.mlen, g.heads, g.row_step);
      break;
  }
}

}  // namespace ranges_detail

/// Tells `v` every range of an instruction other than an H-type one, reads before writes:
///   vram_read / vram_write(first element, lanes, rows, elements from row to row)
///   tile_read(element address in the tile, first row, rows)
///   fp_read / fp_write / int_read / int_write(first entry, entries)
/// Addresses come from the registers of `m`, after the instruction retired; only S_LD_INT can have
/// overwritten its own, so that `rs1_before` says
/// what gp<rs1> held before.
template <class Visitor>
void visit_ranges(const TimedInstruction& i, const Machine& m, const RangeRules& g,
                  std::uint32_t rs1_before, Visitor& v) {
  visit_ranges_of(i.kind, i, m, g, rs1_before, v);
}

/// The same for a kind that the caller knows.
template <class Visitor>
[[gnu::always_inline]] inline void visit_ranges_of(TimedKind kind, const TimedInstruction& i,
                                                   const Machine& m, const RangeRules& g,
                                                   std::uint32_t rs1_before, Visitor& v) {
  switch (kind) {
    case TimedKind::LoadInt:
      v.int_read(g.sum(rs1_before, i.imm), 1);
      break;
    case TimedKind::StoreInt:
      v.int_write(g.sum(m.gp[i.rs1], i.imm), 1);
      break;
    case TimedKind::LoadFp:
      v.fp_read(g.sum(m.gp[i.rs1], i.imm), 1);
      break;
    case TimedKind::StoreFp:
      v.fp_write(g.sum(m.gp[i.rs1], i.imm), 1);
      break;
    case TimedKind::MapFp:
      v.fp_read(g.sum(m.gp[i.rs1], i.imm), g.vlen);
      v.vram_write(m.gp[i.rd], g.vlen, 1, g.vlen);
      break;
    case TimedKind::VectorRows:
      v.vram_read(m.gp[i.rs1], g.vlen, 1, g.vlen);
      v.vram_read(m.gp[i.rs2], g.vlen, 1, g.vlen);
      v.vram_write(m.gp[i.rd], g.vlen, 1, g.vlen);
      break;
    case TimedKind::VectorRow:
      v.vram_read(m.gp[i.rs1], g.vlen, 1, g.vlen);
      v.vram_write(m.gp[i.rd], g.vlen, 1, g.vlen);
      break;
    case TimedKind::Reduce:
      v.vram_read(m.gp[i.rs1], g.vlen, 1, g.vlen);
      break;
    case TimedKind::TopK:
      v.vram_read(m.gp[i.rs1], g.vlen, (top_k_lanes(i.select) + g.vlen - 1) / g.vlen, g.vlen);
      v.int_write(m.gp[i.rs2], top_k_picks(i.select));
      v.fp_write(m.gp[i.rd], top_k_picks(i.select));
      break;
    case TimedKind::Compute:
      ranges_detail::visit_compute(i, m, g, v);
      break;
    case TimedKind::WriteOut:
      ranges_detail::visit_write_out(i, m, g, v);
      break;
    default:
      break;
  }
}

}  // namespace plena
