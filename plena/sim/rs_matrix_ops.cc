// Matrix instructions under the switches of the dialect plena-rs (dialect-plena-rs.md 1). Each
// switch is asked where it matters, so that any of them can be on alone; with none on these
// handlers do what matrix_ops.cc does.
#include <algorithm>

#include <fmt/format.h>

#include "plena/sim/prepared.h"

namespace plena {

namespace {

constexpr float kBmmScale = 0.25F;  // fixed in the emulator: no instruction can change it

bool on(const Execution& x, RsSwitch rs_switch) {
  return x.program.dialect.has(rs_switch);
}

// rs-decode: address sums wrap at 32 bits.
std::uint64_t address_sum(const Execution& x, std::uint64_t a, std::uint64_t b) {
  return on(x, RsSwitch::Decode) ? static_cast<std::uint32_t>(a + b) : a + b;
}

// rs-tile-address: rows of V are MLEN apart, not VLEN.
std::uint64_t row_step(const Execution& x) {
  return on(x, RsSwitch::TileAddress) ? x.program.mlen : x.program.vlen;
}

void require_vector_rows(Execution& x, std::uint64_t address, std::uint64_t rows,
                         const char* operand) {
  if (!on(x, RsSwitch::TileAddress)) {
    x.require_windows(address, rows, operand);
    return;
  }
  const auto& p = x.program;
  bool aligned = p.vlen_divisor.divides(address);
  if (rows > 1) aligned = aligned && p.vlen_divisor.divides(p.mlen);
  x.require(aligned, TrapCause::MisalignedAddress, [&] {
    return std::pair(
        fmt::format("{} = {}", operand, address),
        fmt::format("rows lie {} apart and start at multiples of VLEN = {} (rs-tile-address)",
                    p.mlen, p.vlen));
  });
  x.require(address + (rows - 1) * p.mlen + p.mlen <= p.vram_elements, TrapCause::AddressOutOfRange,
            [&] {
              return std::pair(fmt::format("{} = {}, {} rows", operand, address, rows),
                               fmt::format("Vector SRAM has {} elements", p.vram_elements));
            });
}

// A matrix operand: the tile it lies in and a row or column inside it.
struct TileSlice {
  std::uint64_t tile = 0;   // element address of the tile
  std::uint64_t index = 0;  // row or column where the slice begins
};

// How the offset inside a tile names a row or column.
enum class OffsetUnit : std::uint8_t { Element, Row };

TileSlice slice_at(Execution& x, std::uint64_t address, OffsetUnit unit, const Divisor& multiple,
                   const char* operand) {
  const auto& p = x.program;
  const std::uint64_t offset = p.tile_divisor.modulo(address);
  const TileSlice slice{address - offset, unit == OffsetUnit::Row ? offset / p.mlen : offset};
  const bool aligned = unit == OffsetUnit::Row ? p.mlen_divisor.divides(offset) : offset < p.mlen;
  x.require(aligned && multiple.divides(slice.index), TrapCause::MisalignedAddress, [&] {
    return std::pair(
        fmt::format("{} = {}, offset {} in its tile", operand, address, offset),
        std::string(
            "the offset names no slice of the tile in this dialect (dialect-plena-rs.md 1)"));
  });
  x.require(slice.tile + p.tile_elements <= p.mram_elements, TrapCause::AddressOutOfRange, [&] {
    return std::pair(fmt::format("{} = {}", operand, address),
                     fmt::format("Matrix SRAM has {} elements", p.mram_elements));
  });
  return slice;
}

void require_shape(Execution& x, ArrayShape shape) {
  if (on(x, RsSwitch::Accumulators)) return;
  const ArrayShape held = x.machine.array.shape;
  x.require(held == ArrayShape::Clear || held == shape, TrapCause::ArrayShape, [&] {
    return std::pair(fmt::format("the array holds {}", array_shape_name(held)),
                     fmt::format("this instruction needs {} or a clear array (semantics 3)",
                                 array_shape_name(shape)));
  });
}

std::vector<float>& accumulators(Execution& x, ArrayShape shape) {
  SystolicArray& array = x.machine.array;
  switch (shape) {
    case ArrayShape::Block:
      return array.block;
    case ArrayShape::Row:
      return array.row;
    case ArrayShape::HeadRows:
      return array.head_rows;
    case ArrayShape::BlockRow:
      return array.block_row;
    default:
      if (array.heads.empty()) array.heads.assign(x.program.heads * x.program.tile_elements, 0.0F);
      return array.heads;
  }
}

void set_shape(Execution& x, ArrayShape shape) {
  if (!on(x, RsSwitch::Accumulators)) x.machine.array.shape = shape;
}

std::size_t load_activations(Execution& x, std::uint64_t address, std::uint64_t rows) {
  const auto& p = x.program;
  const std::size_t mlen = p.mlen;
  if (x.activations.size() < rows * mlen) x.activations.resize(rows * mlen);
  if (row_step(x) == mlen) {  // one after the other
    p.vector->to_f32(x.vram(address), x.activations.data(), rows * mlen);
    return mlen;
  }
  for (std::uint64_t r = 0; r < rows; ++r) {
    p.vector->to_f32(x.vram(address + r * row_step(x)), x.activations.data() + r * mlen, mlen);
  }
  return mlen;
}

// rs-sum-order: one block as long as the dot product is a sequential sum.
ProductShape product_shape(const Execution& x, std::size_t rows, std::size_t columns,
                           std::size_t n) {
  return {rows, columns, n, on(x, RsSwitch::SumOrder) ? n : x.program.blen};
}

template <bool kTransposed>
void multiply(Execution& x, const ProductShape& shape, const float* a, std::size_t a_stride,
              const TileSlice& slice, float* out, std::size_t out_stride) {
  const auto& p = x.program;
  const auto product = kTransposed ? p.matrix->product_transposed : p.matrix->product;
  product(shape, a, a_stride, x.mram(slice.tile + slice.index), p.mlen, out, out_stride);
}

// ------------------------------------------------------------ M_MM, M_TMM, M_MV, M_TMV

template <bool kTransposed>
bool block_product(Execution& x, const Prepared& i) {
  const auto& p = x.program;
  const std::uint64_t vector_address = x.gp(kTransposed ? i.rs1 : i.rs2);
  const std::uint64_t matrix_address = x.gp(kTransposed ? i.rs2 : i.rs1);
  require_vector_rows(x, vector_address, p.blen, "the vector operand");
  const bool rows_counted = kTransposed || on(x, RsSwitch::TileAddress);
  TileSlice slice =
      slice_at(x, matrix_address, rows_counted ? OffsetUnit::Row : OffsetUnit::Element,
               p.blen_divisor, "the matrix operand");
  require_shape(x, ArrayShape::Block);
  if (x.faulted) return false;
  if constexpr (kTransposed) slice.index *= p.mlen;  // a row begins there
  const std::size_t stride = load_activations(x, vector_address, p.blen);
  multiply<kTransposed>(x, product_shape(x, p.blen, p.blen, p.mlen), x.activations.data(), stride,
                        slice, accumulators(x, ArrayShape::Block).data(), p.blen);
  set_shape(x, ArrayShape::Block);
  return true;
}

template <bool kTransposed>
bool row_product(Execution& x, const Prepared& i) {
  const auto& p = x.program;
  const bool rs_mv = on(x, RsSwitch::Mv);
  const std::uint64_t vector_address = x.gp(rs_mv ? i.rs2 : i.rs1);
  const std::uint64_t matrix_address = x.gp(rs_mv ? i.rs1 : i.rs2);
  const ArrayShape array_shape = rs_mv ? ArrayShape::BlockRow : ArrayShape::Row;
  require_vector_rows(x, vector_address, 1, "the vector operand");
  // Under rs-mv M_MV names a column block; everything else a whole tile.
  const Divisor& multiple = rs_mv && !kTransposed ? p.blen_divisor : p.tile_divisor;
  const TileSlice slice =
      slice_at(x, matrix_address, OffsetUnit::Element, multiple, "the matrix operand");
  require_shape(x, array_shape);
  if (x.faulted) return false;
  const std::size_t columns = rs_mv ? p.blen : p.mlen;
  const std::size_t stride = load_activations(x, vector_address, 1);
  multiply<kTransposed>(x, product_shape(x, 1, columns, p.mlen), x.activations.data(), stride,
                        slice, accumulators(x, array_shape).data(), columns);
  set_shape(x, array_shape);
  return true;
}

// ------------------------------------------------------------ M_BMM, M_BTMM, M_BMV, M_BTMV

// rs-bmm-lanes: head h of M_BMM takes lane k·H + h instead of h·HLEN + k.
void gather_head_lanes(Execution& x, std::size_t rows, std::size_t head, std::vector<float>& out) {
  const auto& p = x.program;
  out.resize(rows * p.hlen);
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t k = 0; k < p.hlen; ++k) {
      out[r * p.hlen + k] = x.activations[r * p.mlen + k * p.heads + head];
    }
  }
}

template <bool kTransposed>
void head_product(Execution& x, std::size_t rows, std::size_t head, const TileSlice& slice,
                  float* out) {
  const auto& p = x.program;
  const ProductShape shape = product_shape(x, rows, p.mlen, p.hlen);
  std::vector<float> lanes;
  const float* a = x.activations.data() + head * p.hlen;
  std::size_t stride = p.mlen;
  if (!kTransposed && on(x, RsSwitch::BmmLanes)) {
    gather_head_lanes(x, rows, head, lanes);
    a = lanes.data();
    stride = p.hlen;
  }
  if (!on(x, RsSwitch::BmmScale)) {
    multiply<kTransposed>(x, shape, a, stride, slice, out, p.mlen);
    return;
  }
  // rs-bmm-scale: the product is scaled in f32 before it meets the accumulator.
  std::vector<float> product(rows * p.mlen, 0.0F);
  multiply<kTransposed>(x, shape, a, stride, slice, product.data(), p.mlen);
  for (std::size_t k = 0; k < product.size(); ++k) out[k] += product[k] * kBmmScale;
}

template <bool kTransposed>
bool head_products(Execution& x, std::uint64_t vector_address, std::uint64_t matrix_address,
                   std::size_t rows, ArrayShape array_shape) {
  const auto& p = x.program;
  require_vector_rows(x, vector_address, rows, "gp<rs2>");
  // Under rs-tile-address M_BMM's offset is itself the row index.
  const bool rows_counted = !kTransposed && !on(x, RsSwitch::TileAddress);
  TileSlice slice =
      slice_at(x, matrix_address, rows_counted ? OffsetUnit::Row : OffsetUnit::Element,
               p.hlen_divisor, "gp<rs1>");
  require_shape(x, array_shape);
  if (x.faulted) return false;
  if constexpr (!kTransposed) slice.index *= p.mlen;
  load_activations(x, vector_address, rows);
  float* out = accumulators(x, array_shape).data();
  for (std::size_t head = 0; head < p.heads; ++head) {
    head_product<kTransposed>(x, rows, head, slice, out + head * rows * p.mlen);
  }
  set_shape(x, array_shape);
  return true;
}

template <bool kTransposed>
bool batched_product(Execution& x, const Prepared& i) {
  return head_products<kTransposed>(x, x.gp(i.rs2), x.gp(i.rs1), x.program.mlen, ArrayShape::Heads);
}

template <bool kTransposed>
bool batched_row_product(Execution& x, const Prepared& i) {
  // The emulator adds an H x 1 x MLEN product into an H x MLEN accumulator and stops.
  x.require(kTransposed || !on(x, RsSwitch::Accumulators), TrapCause::ArrayShape, [] {
    return std::pair(std::string("M_BMV"),
                     std::string("M_BMV cannot run in this dialect (rs-accumulators)"));
  });
  const std::uint64_t matrix_address = address_sum(x, x.gp(i.rs1), x.gp(i.rd));
  return head_products<kTransposed>(x, x.gp(i.rs2), matrix_address, 1, ArrayShape::HeadRows);
}

// ------------------------------------------------------------ write-outs

void write_out_row(Execution& x, std::uint64_t address, float* values, std::size_t n) {
  x.program.vector->from_f32(values, x.writable_vram(address, n), n);
  std::fill_n(values, n, 0.0F);
}

// Lanes that start inside row `address - address % MLEN` of Vector SRAM.
void require_lanes(Execution& x, std::uint64_t address) {
  const auto& p = x.program;
  const bool row_aligned = !on(x, RsSwitch::TileAddress) ||
                           p.vlen_divisor.divides(address - p.mlen_divisor.modulo(address));
  x.require(row_aligned && p.blen_divisor.divides(address), TrapCause::MisalignedAddress, [&] {
    return std::pair(
        fmt::format("lanes {} …", address),
        fmt::format("a write-out starts at a multiple of BLEN = {} lanes (semantics 6.6)", p.blen));
  });
  x.require(address + p.blen <= p.vram_elements, TrapCause::AddressOutOfRange, [&] {
    return std::pair(fmt::format("lanes {} …", address),
                     fmt::format("Vector SRAM has {} elements", p.vram_elements));
  });
}

// BLEN lanes each of `rows` rows, `step` elements apart.
bool write_out_lanes(Execution& x, std::uint64_t address, std::uint64_t rows, std::uint64_t step,
                     ArrayShape shape) {
  const auto& p = x.program;
  for (std::uint64_t r = 0; r < rows; ++r) require_lanes(x, address_sum(x, address, r * step));
  require_shape(x, shape);
  if (x.faulted) return false;
  float* values = accumulators(x, shape).data();
  for (std::uint64_t r = 0; r < rows; ++r)
    write_out_row(x, address_sum(x, address, r * step), values + r * p.blen, p.blen);
  set_shape(x, ArrayShape::Clear);
  return true;
}

bool block_write_out(Execution& x, const Prepared& i) {
  const std::uint64_t stride = i.rs1 == 0 ? 1 : x.gp(i.rs1);
  return write_out_lanes(x, address_sum(x, x.gp(i.rd), i.imm), x.program.blen, stride * row_step(x),
                         ArrayShape::Block);
}

bool write_out_rows(Execution& x, const Prepared& i, std::size_t rows, ArrayShape shape) {
  const auto& p = x.program;
  const std::uint64_t address = address_sum(x, x.gp(i.rd), i.imm);
  require_vector_rows(x, address, rows, "gp<rd> + imm");
  require_shape(x, shape);
  if (x.faulted) return false;
  float* values = accumulators(x, shape).data();
  for (std::size_t r = 0; r < rows; ++r)
    write_out_row(x, address + r * row_step(x), values + r * p.mlen, p.mlen);
  set_shape(x, ArrayShape::Clear);
  return true;
}

bool row_write_out(Execution& x, const Prepared& i) {
  if (on(x, RsSwitch::Mv)) {
    return write_out_lanes(x, address_sum(x, x.gp(i.rd), i.imm), 1, 0, ArrayShape::BlockRow);
  }
  return write_out_rows(x, i, 1, ArrayShape::Row);
}

bool batched_write_out(Execution& x, const Prepared& i) {
  return write_out_rows(x, i, std::size_t{x.program.heads} * x.program.mlen, ArrayShape::Heads);
}

bool batched_row_write_out(Execution& x, const Prepared& i) {
  return write_out_rows(x, i, x.program.heads, ArrayShape::HeadRows);
}

}  // namespace

// Null where no switch of the dialect reaches matrix instructions.
Handler rs_matrix_handler(const Instruction& instruction, const Dialect& dialect) {
  using enum RsSwitch;
  const auto switches = {Decode, TileAddress, Mv, BmmScale, BmmLanes, Accumulators, SumOrder};
  if (std::none_of(switches.begin(), switches.end(), [&](RsSwitch s) { return dialect.has(s); })) {
    return nullptr;
  }
  switch (instruction.op) {
    case Op::M_MM:
      return block_product<false>;
    case Op::M_TMM:
      return block_product<true>;
    case Op::M_MM_WO:
      return block_write_out;
    case Op::M_MV:
      return row_product<false>;
    case Op::M_TMV:
      return row_product<true>;
    case Op::M_MV_WO:
      return row_write_out;
    case Op::M_BMM:
      return batched_product<false>;
    case Op::M_BTMM:
      return batched_product<true>;
    case Op::M_BMM_WO:
      return batched_write_out;
    case Op::M_BMV:
      return batched_row_product<false>;
    case Op::M_BTMV:
      return batched_row_product<true>;
    case Op::M_BMV_WO:
      return batched_row_write_out;
    default:
      return nullptr;
  }
}

}  // namespace plena
