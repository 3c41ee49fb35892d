// Vector and scalar floating-point instructions under the switches of the dialect plena-rs
// (dialect-plena-rs.md 2 and 3). With none of the switches on they do what vector_ops.cc does.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "plena/numerics/float_format.h"
#include "plena/numerics/rs_formats.h"
#include "plena/sim/prepared.h"

namespace plena {

namespace {

constexpr float kExpClamp = 88.0F;

bool on(const Execution& x, RsSwitch rs_switch) {
  return x.program.dialect.has(rs_switch);
}

bool selected(const Execution& x, std::size_t lane) {
  return (x.machine.v_mask >> (lane / x.program.hlen) & 1) != 0;
}

// A NaN stays a NaN: neither comparison holds.
float clamp_exponent(float value) {
  if (value > kExpClamp) return kExpClamp;
  if (value < -kExpClamp) return -kExpClamp;
  return value;
}

float load_scalar(const Execution& x, std::uint8_t f) {
  return decode_fp(x.program.scalar_format, x.machine.f[f]);
}

void store_scalar(Execution& x, std::uint8_t f, float value) {
  if (f != 0) x.machine.f[f] = encode_fp(x.program.scalar_format, value);
}

// A row being computed: f32 lanes of the first source and of the result.
struct Lanes {
  std::vector<float> source;
  std::vector<float> result;
};

Lanes load_lanes(Execution& x, std::uint64_t address) {
  Lanes lanes;
  lanes.source.resize(x.program.vlen);
  x.program.vector->to_f32(x.vram(address), lanes.source.data(), x.program.vlen);
  lanes.result.resize(x.program.vlen);
  return lanes;
}

// rs-mask-merge: a lane that is not selected keeps the (clamped) source; without it, it becomes +0.
void write_masked(Execution& x, const Prepared& i, Lanes& lanes, std::uint64_t rd) {
  const std::size_t n = x.program.vlen;
  if (i.select != 0) {
    for (std::size_t lane = 0; lane < n; ++lane) {
      if (!selected(x, lane))
        lanes.result[lane] = on(x, RsSwitch::MaskMerge) ? lanes.source[lane] : 0.0F;
    }
  }
  x.program.vector->from_f32(lanes.result.data(), x.writable_vram(rd, n), n);
}

template <class Operation>
bool lane_wise(Execution& x, const Prepared& i, Operation operation) {
  const std::uint64_t rd = x.gp(i.rd), rs1 = x.gp(i.rs1);
  x.require_row(rd, "gp<rd>");
  x.require_row(rs1, "gp<rs1>");
  if (x.faulted) return false;
  Lanes lanes = load_lanes(x, rs1);
  for (std::size_t lane = 0; lane < lanes.source.size(); ++lane)
    lanes.result[lane] = operation(lanes.source[lane]);
  write_masked(x, i, lanes, rd);
  return true;
}

template <class Operation>
bool lane_wise_pair(Execution& x, const Prepared& i, Operation operation) {
  const std::uint64_t rd = x.gp(i.rd), rs1 = x.gp(i.rs1), rs2 = x.gp(i.rs2);
  x.require_row(rd, "gp<rd>");
  x.require_row(rs1, "gp<rs1>");
  x.require_row(rs2, "gp<rs2>");
  if (x.faulted) return false;
  Lanes lanes = load_lanes(x, rs1);
  const Lanes second = load_lanes(x, rs2);
  for (std::size_t lane = 0; lane < lanes.source.size(); ++lane) {
    lanes.result[lane] = operation(lanes.source[lane], second.source[lane]);
  }
  write_masked(x, i, lanes, rd);
  return true;
}

bool add(Execution& x, const Prepared& i) {
  return lane_wise_pair(x, i, [](float a, float b) { return a + b; });
}
bool multiply(Execution& x, const Prepared& i) {
  return lane_wise_pair(x, i, [](float a, float b) { return a * b; });
}
// rs-sub-order: rs1 - rs2.
bool subtract(Execution& x, const Prepared& i) {
  if (on(x, RsSwitch::SubOrder))
    return lane_wise_pair(x, i, [](float a, float b) { return a - b; });
  return lane_wise_pair(x, i, [](float a, float b) { return b - a; });
}

float broadcast_value(const Execution& x, const Prepared& i) {
  return decode_fp(
      x.program.vector_format,
      convert_fp(x.program.scalar_format, x.program.vector_format, x.machine.f[i.rs2]));
}
bool add_scalar(Execution& x, const Prepared& i) {
  return lane_wise(x, i, [s = broadcast_value(x, i)](float a) { return a + s; });
}
bool multiply_scalar(Execution& x, const Prepared& i) {
  return lane_wise(x, i, [s = broadcast_value(x, i)](float a) { return a * s; });
}
bool subtract_scalar(Execution& x, const Prepared& i) {
  const float s = broadcast_value(x, i);
  if (i.order != 0) return lane_wise(x, i, [s](float a) { return s - a; });
  return lane_wise(x, i, [s](float a) { return a - s; });
}

// rs-max: the tensor library's clamp. A NaN lane stays NaN, a NaN scalar makes every lane NaN, and
// of two zeros the lane stays.
float clamp_low(float lane, float low) {
  return std::isnan(low) || low > lane ? low : lane;
}
float clamp_high(float lane, float high) {
  return std::isnan(high) || high < lane ? high : lane;
}

bool max_scalar(Execution& x, const Prepared& i) {
  const float s = broadcast_value(x, i);
  if (on(x, RsSwitch::Max)) return lane_wise(x, i, [s](float a) { return clamp_low(a, s); });
  return lane_wise(x, i, [s](float a) { return maximum_number(a, s); });
}
bool min_scalar(Execution& x, const Prepared& i) {
  const float s = broadcast_value(x, i);
  if (on(x, RsSwitch::Max)) return lane_wise(x, i, [s](float a) { return clamp_high(a, s); });
  return lane_wise(x, i, [s](float a) { return minimum_number(a, s); });
}

// rs-exp-clamp: the source is clamped first, and that is what an unselected lane then keeps.
bool exponential(Execution& x, const Prepared& i) {
  const std::uint64_t rd = x.gp(i.rd), rs1 = x.gp(i.rs1);
  x.require_row(rd, "gp<rd>");
  x.require_row(rs1, "gp<rs1>");
  if (x.faulted) return false;
  Lanes lanes = load_lanes(x, rs1);
  const ElementType format = x.program.vector_format;
  for (std::size_t lane = 0; lane < lanes.source.size(); ++lane) {
    float& source = lanes.source[lane];
    if (on(x, RsSwitch::ExpClamp)) source = clamp_exponent(source);
    // 88 and every row value are values of the row's format, so that encoding is exact.
    lanes.result[lane] = decode_fp(format, exp_fp(format, encode_fp(format, source)));
  }
  write_masked(x, i, lanes, rd);
  return true;
}

bool reciprocal(Execution& x, const Prepared& i) {
  const ElementType format = x.program.vector_format;
  return lane_wise(x, i, [format](float a) {
    return decode_fp(format, reciprocal_fp(format, encode_fp(format, a)));
  });
}

// ------------------------------------------------------------ reductions

float row_sum(const Execution& x, std::vector<float>& values) {
  return on(x, RsSwitch::SumOrder) ? rs_row_sum(values.data(), values.size())
                                   : tree_sum(values.data(), values.size());
}

// rs-mask-merge: each selected group is replaced by its own sum in every lane before the row is
// summed.
void spread_group_sums(const Execution& x, std::vector<float>& values) {
  const std::size_t hlen = x.program.hlen;
  for (std::size_t begin = 0; begin < values.size(); begin += hlen) {
    if (!selected(x, begin)) continue;
    std::vector<float> group(values.begin() + static_cast<std::ptrdiff_t>(begin),
                             values.begin() + static_cast<std::ptrdiff_t>(begin + hlen));
    const float sum = row_sum(x, group);
    std::fill_n(values.begin() + static_cast<std::ptrdiff_t>(begin), hlen, sum);
  }
}

// rs-registers: a reduction into f0 does nothing at all.
bool vanishes(const Execution& x, const Prepared& i) {
  return i.rd == 0 && on(x, RsSwitch::Registers);
}

bool reduce_sum(Execution& x, const Prepared& i) {
  if (vanishes(x, i)) return true;
  const std::uint64_t rs1 = x.gp(i.rs1);
  x.require_row(rs1, "gp<rs1>");
  if (x.faulted) return false;
  Lanes lanes = load_lanes(x, rs1);
  if (i.select != 0 && on(x, RsSwitch::MaskMerge)) spread_group_sums(x, lanes.source);
  const float sum = row_sum(x, lanes.source);
  store_scalar(x, i.rd, load_scalar(x, i.rd) + sum);
  return true;
}

// Under rs-mask-merge the mask has no effect on the maximum: unselected lanes take part.
bool takes_part(const Execution& x, const Prepared& i, std::size_t lane) {
  return i.select == 0 || on(x, RsSwitch::MaskMerge) || selected(x, lane);
}

bool reduce_max(Execution& x, const Prepared& i) {
  if (vanishes(x, i)) return true;
  const std::uint64_t rs1 = x.gp(i.rs1);
  x.require_row(rs1, "gp<rs1>");
  if (x.faulted) return false;
  const Lanes lanes = load_lanes(x, rs1);
  float result = load_scalar(x, i.rd);
  bool any = false;
  bool any_nan = false;
  float largest = 0;
  for (std::size_t lane = 0; lane < lanes.source.size(); ++lane) {
    if (!takes_part(x, i, lane)) continue;
    const float value = lanes.source[lane];
    any_nan = any_nan || std::isnan(value);
    largest = any ? maximum_number(largest, value) : value;
    any = true;
  }
  if (!any) return true;
  // rs-max: a row with a NaN leaves the register unchanged.
  if (on(x, RsSwitch::Max) && any_nan) return true;
  result = maximum_number(result, largest);
  store_scalar(x, i.rd, result);
  return true;
}

// ------------------------------------------------------------ V_TOPK

constexpr std::size_t kMostChosen = 8;

// rs-topk: total order, so that +0 ranks above -0; NaN counts as -infinity.
bool ranks_above(float a, float b) {
  if (a != b) return a > b;
  return !std::signbit(a) && std::signbit(b);
}

// Softmax with the sum in rank order; all 0 unless the sum is finite and positive.
std::array<float, kMostChosen> rank_softmax(const float* chosen, std::size_t n) {
  std::array<float, kMostChosen> weights{};
  float sum = 0;
  for (std::size_t k = 0; k < n; ++k) {
    const float shifted = chosen[k] - chosen[0];
    weights[k] = std::bit_cast<float>(exp_fp(kFp32, std::bit_cast<std::uint32_t>(shifted)));
    sum += weights[k];
  }
  const bool usable = std::isfinite(sum) && sum > 0;
  for (std::size_t k = 0; k < n; ++k) weights[k] = usable ? weights[k] / sum : 0.0F;
  return weights;
}

void require_entries(Execution& x, std::uint64_t address, std::size_t count, std::size_t size,
                     const char* memory) {
  x.require(address + count <= size, TrapCause::AddressOutOfRange, [&] {
    return std::pair(fmt::format("address {}, {} entries", address, count),
                     fmt::format("{} has {} entries (semantics 6.15)", memory, size));
  });
}

// rs-decode lets other policies through to the moment they are reached.
bool unknown_policy(Execution& x, const Prepared& i) {
  x.note_fault(TrapCause::IllegalInstruction, fmt::format("policy {}", i.select),
               "V_TOPK has policies 0 and 1");
  return false;
}

bool rank_top_k(Execution& x, const Prepared& i) {
  const auto& p = x.program;
  const std::size_t lanes = i.select == 0 ? 32 : 128;
  const std::size_t chosen = i.select == 0 ? 4 : kMostChosen;
  x.require_rows(x.gp(i.rs1), (lanes + p.vlen - 1) / p.vlen, "gp<rs1>");
  require_entries(x, x.gp(i.rs2), chosen, x.machine.int_mem.size(), "INT_MEM");
  require_entries(x, x.gp(i.rd), chosen, x.machine.fp_mem.size(), "FP_MEM");
  if (x.faulted) return false;
  std::vector<float> values(lanes);
  p.vector->to_f32(x.vram(x.gp(i.rs1)), values.data(), lanes);
  for (float& value : values) {
    if (std::isnan(value)) value = -std::numeric_limits<float>::infinity();
  }
  std::vector<std::uint32_t> order(lanes);
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return ranks_above(values[a], values[b]);
  });
  std::array<float, kMostChosen> best{};
  for (std::size_t k = 0; k < chosen; ++k) best[k] = values[order[k]];
  const auto weights = rank_softmax(best.data(), chosen);
  for (std::size_t k = 0; k < chosen; ++k) {
    x.machine.int_mem[x.gp(i.rs2) + k] = order[k];
    x.machine.fp_mem[x.gp(i.rd) + k] = encode_fp(p.scalar_format, weights[k]);
  }
  return true;
}

// ------------------------------------------------------------ scalars

bool scalar_exponential(Execution& x, const Prepared& i) {
  if (i.rd == 0) return true;
  const ElementType format = x.program.scalar_format;
  const std::uint32_t bits = encode_fp(format, clamp_exponent(load_scalar(x, i.rs1)));
  x.machine.f[i.rd] = exp_fp(format, bits);
  return true;
}

// rs-max: the second operand only where it is greater.
bool scalar_maximum(Execution& x, const Prepared& i) {
  if (i.rd == 0) return true;
  const float a = load_scalar(x, i.rs1);
  const float b = load_scalar(x, i.rs2);
  store_scalar(x, i.rd, b > a ? b : a);
  return true;
}

}  // namespace

// Null where the instruction means the same with and without the dialect's switches: then the fast
// handler of vector_ops.cc serves.
Handler rs_vector_handler(const Instruction& instruction, const Dialect& dialect) {
  const bool merges = instruction.select != 0 && dialect.has(RsSwitch::MaskMerge);
  const bool into_f0 = instruction.rd == 0 && dialect.has(RsSwitch::Registers);
  const auto when = [&](bool differs, Handler handler) {
    return merges || differs ? handler : nullptr;
  };
  switch (instruction.op) {
    case Op::V_ADD_VV:
      return when(false, add);
    case Op::V_SUB_VV:
      return when(dialect.has(RsSwitch::SubOrder), subtract);
    case Op::V_MUL_VV:
      return when(false, multiply);
    case Op::V_ADD_VF:
      return when(false, add_scalar);
    case Op::V_SUB_VF:
      return when(false, subtract_scalar);
    case Op::V_MUL_VF:
      return when(false, multiply_scalar);
    case Op::V_MAX_VF:
      return when(dialect.has(RsSwitch::Max), max_scalar);
    case Op::V_MIN_VF:
      return when(dialect.has(RsSwitch::Max), min_scalar);
    case Op::V_EXP_V:
      return when(dialect.has(RsSwitch::ExpClamp), exponential);
    case Op::V_RECI_V:
      return when(false, reciprocal);
    case Op::V_RED_SUM:
      return when(dialect.has(RsSwitch::SumOrder) || into_f0, reduce_sum);
    case Op::V_RED_MAX:
      return when(dialect.has(RsSwitch::Max) || into_f0, reduce_max);
    case Op::V_TOPK:
      if (instruction.select > 1) return unknown_policy;
      return dialect.has(RsSwitch::TopK) ? rank_top_k : nullptr;
    default:
      return nullptr;
  }
}

Handler rs_scalar_handler(const Instruction& instruction, const Dialect& dialect) {
  switch (instruction.op) {
    case Op::S_EXP_FP:
      return dialect.has(RsSwitch::ExpClamp) ? scalar_exponential : nullptr;
    case Op::S_MAX_FP:
      return dialect.has(RsSwitch::Max) ? scalar_maximum : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace plena
