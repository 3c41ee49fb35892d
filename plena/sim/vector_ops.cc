// Vector instructions: rows of Vector SRAM in, rows or a scalar out (semantics 6.7, 6.8).
#include <bit>
#include <cstring>

#include "plena/numerics/float_format.h"
#include "plena/sim/prepared.h"

namespace plena {

namespace {

// A mask that selects no lane still has its addresses checked; rmask 0 selects all (semantics 6.7).
bool selects_all(const Prepared& i) {
  return i.select == 0;
}

bool selected(const Execution& x, std::uint32_t group) {
  return (x.machine.v_mask >> group & 1) != 0;
}

std::uint32_t group_count(const Execution& x) {
  return x.program.vlen / x.program.hlen;
}

// `X & mask`: a lane that is not selected becomes +0.
void clear_unselected(Execution& x, std::uint8_t* row) {
  const std::size_t group_bytes = x.program.hlen * x.program.vector_bytes;
  for (std::uint32_t group = 0; group < group_count(x); ++group) {
    if (!selected(x, group)) std::memset(row + group * group_bytes, 0, group_bytes);
  }
}

template <VectorKernels::Binary VectorKernels::* kernel, bool kSwapped = false>
bool row_with_row(Execution& x, const Prepared& i) {
  const std::uint64_t rd = x.gp(i.rd), rs1 = x.gp(i.rs1), rs2 = x.gp(i.rs2);
  x.require_row(rd, "gp<rd>");
  x.require_row(rs1, "gp<rs1>");
  x.require_row(rs2, "gp<rs2>");
  if (x.faulted) return false;
  std::uint8_t* out = x.writable_vram(rd, x.program.vlen);
  const std::uint8_t* first = x.vram(kSwapped ? rs2 : rs1);
  const std::uint8_t* second = x.vram(kSwapped ? rs1 : rs2);
  (x.program.vector->*kernel)(first, second, out, x.program.vlen);
  if (!selects_all(i)) clear_unselected(x, out);
  return true;
}

// A broadcast scalar is converted to the row's format, with one rounding (semantics 4.1).
float broadcast_value(const Execution& x, std::uint8_t f) {
  const std::uint32_t bits =
      convert_fp(x.program.scalar_format, x.program.vector_format, x.machine.f[f]);
  return decode_fp(x.program.vector_format, bits);
}

template <VectorKernels::WithScalar VectorKernels::* kernel>
bool row_with_scalar(Execution& x, const Prepared& i) {
  const std::uint64_t rd = x.gp(i.rd), rs1 = x.gp(i.rs1);
  x.require_row(rd, "gp<rd>");
  x.require_row(rs1, "gp<rs1>");
  if (x.faulted) return false;
  std::uint8_t* out = x.writable_vram(rd, x.program.vlen);
  (x.program.vector->*kernel)(x.vram(rs1), broadcast_value(x, i.rs2), out, x.program.vlen);
  if (!selects_all(i)) clear_unselected(x, out);
  return true;
}

bool subtract_scalar(Execution& x, const Prepared& i) {
  return i.order == 0 ? row_with_scalar<&VectorKernels::subtract_scalar>(x, i)
                      : row_with_scalar<&VectorKernels::subtract_from_scalar>(x, i);
}

template <VectorKernels::Unary VectorKernels::* kernel>
bool row_alone(Execution& x, const Prepared& i) {
  const std::uint64_t rd = x.gp(i.rd), rs1 = x.gp(i.rs1);
  x.require_row(rd, "gp<rd>");
  x.require_row(rs1, "gp<rs1>");
  if (x.faulted) return false;
  std::uint8_t* out = x.writable_vram(rd, x.program.vlen);
  (x.program.vector->*kernel)(x.vram(rs1), out, x.program.vlen);
  if (!selects_all(i)) clear_unselected(x, out);
  return true;
}

void set_f(Execution& x, std::uint8_t f, float value) {
  if (f != 0) x.machine.f[f] = encode_fp(x.program.scalar_format, value);
}

// semantics 4.6: the tree's root plus the register in f32, then one rounding.
bool reduce_sum(Execution& x, const Prepared& i) {
  const std::uint64_t rs1 = x.gp(i.rs1);
  x.require_row(rs1, "gp<rs1>");
  if (x.faulted) return false;
  const float root = x.program.vector->sum(x.vram(rs1), x.program.vlen);
  set_f(x, i.rd, root + decode_fp(x.program.scalar_format, x.machine.f[i.rd]));
  return true;
}

// With no lane selected the register stays as it was (semantics 6.7).
bool reduce_max(Execution& x, const Prepared& i) {
  const std::uint64_t rs1 = x.gp(i.rs1);
  x.require_row(rs1, "gp<rs1>");
  if (x.faulted) return false;
  float result = decode_fp(x.program.scalar_format, x.machine.f[i.rd]);
  if (selects_all(i)) {
    result = maximum_number(result, x.program.vector->maximum(x.vram(rs1), x.program.vlen));
    set_f(x, i.rd, result);
    return true;
  }
  bool any = false;
  for (std::uint32_t group = 0; group < group_count(x); ++group) {
    if (!selected(x, group)) continue;
    const auto* lanes = x.vram(rs1 + std::uint64_t{group} * x.program.hlen);
    result = maximum_number(result, x.program.vector->maximum(lanes, x.program.hlen));
    any = true;
  }
  if (any) set_f(x, i.rd, result);
  return true;
}

// V_SHFT_V is a copy: it keeps the bits (semantics 4.1). Source and destination may be one row.
bool shift(Execution& x, const Prepared& i) {
  const std::uint64_t rd = x.gp(i.rd), rs1 = x.gp(i.rs1);
  x.require_row(rd, "gp<rd>");
  x.require_row(rs1, "gp<rs1>");
  if (x.faulted) return false;
  const std::size_t lanes = std::min<std::size_t>(x.gp(i.rs2), x.program.vlen);
  const std::size_t below = lanes * x.program.vector_bytes;
  const std::size_t kept = (x.program.vlen - lanes) * x.program.vector_bytes;
  std::uint8_t* out = x.writable_vram(rd, x.program.vlen);
  std::memmove(out + below, x.vram(rs1), kept);
  std::memset(out, 0, below);
  return true;
}

}  // namespace

bool top_k(Execution& x, const Prepared& i);  // topk.cc

Handler vector_handler(const Instruction& instruction, const Dialect& dialect) {
  if (Handler rs = rs_vector_handler(instruction, dialect)) return rs;
  using K = VectorKernels;
  switch (instruction.op) {
    case Op::V_ADD_VV:
      return row_with_row<&K::add>;
    case Op::V_SUB_VV:
      return row_with_row<&K::subtract, true>;
    case Op::V_MUL_VV:
      return row_with_row<&K::multiply>;
    case Op::V_ADD_VF:
      return row_with_scalar<&K::add_scalar>;
    case Op::V_SUB_VF:
      return subtract_scalar;
    case Op::V_MUL_VF:
      return row_with_scalar<&K::multiply_scalar>;
    case Op::V_MAX_VF:
      return row_with_scalar<&K::max_scalar>;
    case Op::V_MIN_VF:
      return row_with_scalar<&K::min_scalar>;
    case Op::V_EXP_V:
      return row_alone<&K::exp>;
    case Op::V_RECI_V:
      return row_alone<&K::reciprocal>;
    case Op::V_RED_SUM:
      return reduce_sum;
    case Op::V_RED_MAX:
      return reduce_max;
    case Op::V_SHFT_V:
      return shift;
    case Op::V_TOPK:
      return top_k;
    default:
      return nullptr;
  }
}

}  // namespace plena
