// Transfers under the switches rs-hbm-bytes and rs-mx (dialect-plena-rs.md 6). Either can be on
// alone: addresses follow the first, numbers the second.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "plena/numerics/float_format.h"
#include "plena/numerics/rs_formats.h"
#include "plena/sim/prepared.h"

namespace plena {

namespace {

constexpr std::uint64_t kHbmBlock = 64;  // bytes the emulator's memory moves at a time

bool on(const Execution& x, RsSwitch rs_switch) {
  return x.program.dialect.has(rs_switch);
}

// One transfer: where its rows lie in HBM, by the rules that are on.
struct Access {
  const HbmCodec& codec;
  const RsDecoder* decoder = nullptr;  // under rs-mx
  std::uint64_t base = 0;
  std::uint64_t offset = 0;  // gp<rs1>: bytes under rs-hbm-bytes, else elements
  std::uint64_t stride = 0;  // likewise
  std::uint64_t rows = 0;
  std::uint64_t length = 0;  // elements a row
  bool in_bytes = false;     // rs-hbm-bytes

  [[nodiscard]] DataType type() const { return codec.hbm_type(); }
  [[nodiscard]] std::uint64_t first_element(std::uint64_t row) const {
    return offset + row * stride;
  }

  [[nodiscard]] std::uint64_t element_address(std::uint64_t row) const {
    const std::uint64_t at = first_element(row);
    return base + (in_bytes ? at : at * type().width() / 8);
  }
  // Bytes whose scale is one byte; the two floors are separate (dialect-plena-rs.md 6).
  [[nodiscard]] std::uint64_t scale_address(std::uint64_t scale_register, std::uint64_t row) const {
    if (!in_bytes) return base + scale_register + first_element(row) / type().block;
    const std::uint64_t bytes_a_scale = std::uint64_t{type().width()} * type().block / 8;
    const float scales_a_row = static_cast<float>(stride) / static_cast<float>(bytes_a_scale);
    const float scales_before = static_cast<float>(row) * scales_a_row;
    return base + scale_register + offset / bytes_a_scale +
           static_cast<std::uint64_t>(scales_before);
  }
  // Scales of whole blocks; elements after the last of them have none.
  [[nodiscard]] std::uint64_t scale_count() const {
    return type().is_mx() ? length / type().block : 0;
  }
  [[nodiscard]] std::uint64_t element_span() const { return (length * type().width() + 7) / 8; }
};

// The types an instruction moves between: weights or KV of a matrix, activations or KV of vectors.
enum class Side : std::uint8_t { Matrix, Vector };

const HbmCodec& codec_of(const Execution& x, const Prepared& i, Side side) {
  const auto& p = x.program;
  if (side == Side::Matrix) return i.order != 0 ? p.matrix_kv_codec : p.weight_codec;
  return i.order != 0 ? p.vector_kv_codec : p.activation_codec;
}

const RsDecoder* decoder_of(const Execution& x, const Prepared& i, Side side) {
  if (x.program.rs_decoders.empty()) return nullptr;
  return &x.program.rs_decoders[(side == Side::Matrix ? 0 : 2) + (i.order != 0 ? 1 : 0)];
}

Access make_access(const Execution& x, const Prepared& i, Side side, std::uint64_t rows,
                   std::uint64_t length) {
  // Only a field of exactly 1 strides.
  const std::uint64_t stride = i.select == 1 ? x.machine.stride : length;
  return {codec_of(x, i, side),
          decoder_of(x, i, side),
          x.machine.a[i.rs2],
          x.gp(i.rs1),
          stride,
          rows,
          length,
          on(x, RsSwitch::HbmBytes)};
}

// Without rs-registers a register can still be unset (semantics 7).
void require_registers(Execution& x, const Prepared& i, const Access& access) {
  const auto require = [&](bool set, std::string name) {
    x.require(set, TrapCause::UnsetRegister, [&] {
      return std::pair(name + " was never set",
                       std::string("registers are set before their use (semantics 7)"));
    });
  };
  require((x.machine.a_set >> i.rs2 & 1) != 0, fmt::format("a{}", i.rs2));
  if (i.select == 1) require(x.machine.stride_set, "STRIDE_REG");
  if (access.type().is_mx()) require(x.machine.scale_set, "SCALE_REG");
}

// rs-mx: the emulator moves whole bytes and stops at other widths.
void require_width(Execution& x, const Access& access, bool write) {
  if (!on(x, RsSwitch::Mx)) return;
  const std::uint32_t width = access.type().width();
  const bool moves = (width & (width - 1)) == 0 && (write || width % 8 == 0);
  x.require(moves, TrapCause::IllegalInstruction, [&] {
    return std::pair(fmt::format("elements of {} bits ({})", width, access.type().name()),
                     fmt::format("this dialect cannot {} them (rs-mx, dialect-plena-rs.md 5)",
                                 write ? "store" : "load"));
  });
}

// Loads may leave HBM under rs-hbm-bytes: what lies outside reads 0. Nothing else may.
void require_inside(Execution& x, const Access& access, bool write) {
  if (!write && access.in_bytes) return;
  const std::uint64_t size = x.program.settings.hbm_size;
  bool inside = true;
  for (std::uint64_t row = 0; row < access.rows; ++row) {
    const auto fits = [&](std::uint64_t address, std::uint64_t bytes) {
      return address >= access.base && address <= size && bytes <= size - address;
    };
    inside = inside && fits(access.element_address(row), access.element_span());
    if (access.type().is_mx()) {
      inside = inside && fits(access.scale_address(x.machine.scale, row),
                              std::max<std::uint64_t>(access.scale_count(), 1));
    }
  }
  x.require(inside, TrapCause::HbmOutOfRange, [&] {
    return std::pair(fmt::format("{} rows from 0x{:X}", access.rows, access.element_address(0)),
                     fmt::format("HBM has 0x{:X} bytes (semantics 5.6)", size));
  });
}

void copy_from_hbm(const Execution& x, std::uint64_t address, std::uint64_t bytes,
                   std::uint8_t* out) {
  const std::uint64_t size = x.machine.hbm.size();
  const std::uint64_t inside = address >= size ? 0 : std::min(bytes, size - address);
  if (inside != 0) std::memcpy(out, x.machine.hbm.data() + address, inside);
  std::memset(out + inside, 0, bytes - inside);
}

// A row's scales come from one 64-byte block only; those beyond it are left 0.
std::uint64_t readable_scales(const Access& access, std::uint64_t address) {
  if (!access.in_bytes) return access.scale_count();
  return std::min(access.scale_count(), kHbmBlock - address % kHbmBlock);
}

void tell_row(const Execution& x, const Access& access, std::uint64_t row, bool write) {
  if (x.observer == nullptr) return;
  HbmRow moved{.write = write,
               .element_address = access.element_address(row),
               .element_bytes = access.element_span()};
  if (access.type().is_mx()) {
    moved.scale_address = access.scale_address(x.machine.scale, row);
    moved.scale_bytes = write ? access.scale_count() : readable_scales(access, moved.scale_address);
  }
  x.observer->moved_row(moved);
}

// The scale bytes of one row: those that are read, then 0, then 1.0 for elements without a block.
void load_scales(Execution& x, const Access& access, std::uint64_t row) {
  constexpr std::uint8_t kOne = 127;
  const std::uint64_t room = access.length / access.type().block + 2;
  if (x.scales.size() < room) x.scales.resize(room);
  const std::uint64_t at = access.scale_address(x.machine.scale, row);
  if (!access.in_bytes) {
    copy_from_hbm(x, at, room - 1, x.scales.data());
    return;
  }
  const std::uint64_t read = readable_scales(access, at);
  copy_from_hbm(x, at, read, x.scales.data());
  std::fill(x.scales.begin() + static_cast<std::ptrdiff_t>(read), x.scales.end(), std::uint8_t{0});
  x.scales[access.scale_count()] = kOne;
}

// Rows of a matrix lie far apart: what comes in a few rows' time is on its way meanwhile.
void announce_row(const Execution& x, const Access& access, std::uint64_t row) {
  const auto announce = [&](std::uint64_t address) {
    if (address < x.machine.hbm.size()) __builtin_prefetch(x.machine.hbm.data() + address);
  };
  announce(access.element_address(row));
  if (access.type().is_mx()) announce(access.scale_address(x.machine.scale, row));
}

void load_row(Execution& x, const Access& access, std::uint64_t row, std::uint8_t* to,
              const VectorKernels& sram) {
  const std::uint64_t bytes = access.element_span() + 8;  // room for a bit offset
  if (x.row_bytes.size() < bytes) x.row_bytes.resize(bytes);
  copy_from_hbm(x, access.element_address(row), bytes, x.row_bytes.data());
  if (access.type().is_mx()) load_scales(x, access, row);
  const std::uint64_t first = access.in_bytes ? 0 : access.first_element(row);
  if (access.decoder == nullptr) {
    access.codec.decode(x.row_bytes.data(), x.scales.data(), first, access.length, to);
    return;
  }
  if (x.row_values.size() < access.length) x.row_values.resize(access.length);
  access.decoder->decode(x.row_bytes.data(), x.scales.data(), first, access.length,
                         x.row_values.data());
  sram.from_f32(x.row_values.data(), to, access.length);
}

// rs-hbm-bytes: a tile's scales are counted over the whole tile, but read row by row.
void require_blocks_in_tile(Execution& x, const Access& access) {
  if (!access.in_bytes || !access.type().is_mx()) return;
  const std::uint64_t counted = access.length * access.length / access.type().block;
  x.require(counted <= access.length * access.scale_count(), TrapCause::MxBlockMisaligned, [&] {
    return std::pair(
        fmt::format("rows of {} elements, blocks of {}", access.length, access.type().block),
        std::string("a row of a tile is whole blocks (rs-hbm-bytes)"));
  });
}

bool prefetch_matrix(Execution& x, const Prepared& i) {
  const auto& p = x.program;
  const std::uint64_t rows = p.settings.hbm_m_prefetch_amount;
  const Access access = make_access(x, i, Side::Matrix, rows, p.mlen);
  const std::uint64_t rd = x.gp(i.rd);
  require_width(x, access, false);
  require_registers(x, i, access);
  require_inside(x, access, false);
  require_blocks_in_tile(x, access);
  x.require(p.tile_divisor.divides(rd), TrapCause::MisalignedAddress, [&] {
    return std::pair(fmt::format("gp<rd> = {}", rd),
                     fmt::format("a tile is loaded at a multiple of MLEN^2 = {} (semantics 6.9)",
                                 p.tile_elements));
  });
  x.require(rd + rows * p.mlen <= p.mram_elements, TrapCause::AddressOutOfRange, [&] {
    return std::pair(fmt::format("gp<rd> = {}, {} rows", rd, rows),
                     fmt::format("Matrix SRAM has {} elements (semantics 6.15)", p.mram_elements));
  });
  if (x.faulted) return false;
  const VectorKernels& sram = vector_kernels(p.matrix_format, p.simd);
  constexpr std::uint64_t kAhead = 8;
  for (std::uint64_t row = 0; row < rows; ++row) {
    announce_row(x, access, row + kAhead);
    const std::uint64_t at = (rd + row * p.mlen) * p.matrix_bytes;
    load_row(x, access, row, x.machine.mram.writable(at, p.mlen * p.matrix_bytes), sram);
    tell_row(x, access, row, false);
  }
  return true;
}

bool prefetch_vector(Execution& x, const Prepared& i) {
  const auto& p = x.program;
  const Access access = make_access(x, i, Side::Vector, p.settings.hbm_v_prefetch_amount, p.vlen);
  const std::uint64_t rd = x.gp(i.rd);
  require_width(x, access, false);
  require_registers(x, i, access);
  require_inside(x, access, false);
  x.require_rows(rd, access.in_bytes ? 1 : access.rows, "gp<rd>");  // later rows may be dropped
  if (x.faulted) return false;
  for (std::uint64_t row = 0; row < access.rows; ++row) {
    tell_row(x, access, row, false);
    const std::uint64_t at = rd + row * p.vlen;
    if (at + p.vlen > p.vram_elements) continue;  // dropped silently (rs-hbm-bytes)
    load_row(x, access, row, x.writable_vram(at, p.vlen), *p.vector);
  }
  return true;
}

// Without rs-hbm-bytes a stored row is whole blocks and whole bytes (semantics 5.7).
void require_whole_blocks(Execution& x, const Access& access) {
  if (access.in_bytes) return;
  const std::uint64_t unit = access.type().is_mx() ? access.type().block : 1;
  const auto whole = [&](std::uint64_t elements) {
    return elements % unit == 0 && elements * access.type().width() % 8 == 0;
  };
  bool aligned = whole(access.length);
  for (std::uint64_t row = 0; row < access.rows; ++row)
    aligned = aligned && whole(access.first_element(row));
  x.require(aligned, TrapCause::MxBlockMisaligned, [&] {
    return std::pair(
        fmt::format("rows of {} elements from element {}", access.length, access.offset),
        fmt::format("a stored row is whole blocks of {} and whole bytes (semantics 5.7)", unit));
  });
}

void store_row(Execution& x, const Access& access, std::uint64_t row, std::uint64_t source) {
  const auto& p = x.program;
  const std::uint64_t bytes = access.element_span();
  if (x.row_bytes.size() < bytes) x.row_bytes.resize(bytes);
  if (x.scales.size() < access.scale_count() + 1) x.scales.resize(access.scale_count() + 1);
  if (on(x, RsSwitch::Mx)) {
    if (x.row_values.size() < access.length) x.row_values.resize(access.length);
    p.vector->to_f32(x.vram(source), x.row_values.data(), access.length);
    rs_encode_row(access.type(), x.row_values.data(), access.length, x.row_bytes.data(),
                  x.scales.data());
  } else {
    access.codec.encode(x.vram(source), access.length, x.row_bytes.data(), x.scales.data());
  }
  const auto write_scales = [&] {
    const std::uint64_t scales = access.scale_count();
    if (scales == 0) return;
    std::copy_n(x.scales.data(), scales,
                x.machine.hbm.writable(access.scale_address(x.machine.scale, row), scales));
  };
  // Where the two overlap the later one stands: the elements (semantics 5.7), but under
  // rs-hbm-bytes the scales.
  if (!access.in_bytes) write_scales();
  std::copy_n(x.row_bytes.data(), bytes,
              x.machine.hbm.writable(access.element_address(row), bytes));
  if (access.in_bytes) write_scales();
}

bool store_vector(Execution& x, const Prepared& i) {
  const auto& p = x.program;
  const Access access = make_access(x, i, Side::Vector, p.settings.hbm_v_writeback_amount, p.vlen);
  const std::uint64_t rd = x.gp(i.rd);
  require_width(x, access, true);
  require_registers(x, i, access);
  require_inside(x, access, true);
  x.require_rows(rd, access.rows, "gp<rd>");
  require_whole_blocks(x, access);
  if (x.faulted) return false;
  for (std::uint64_t row = 0; row < access.rows; ++row) {
    store_row(x, access, row, rd + row * p.vlen);
    tell_row(x, access, row, true);
  }
  return true;
}

}  // namespace

Handler rs_memory_handler(const Instruction& instruction, const Dialect& dialect) {
  const bool differs =
      dialect.has(RsSwitch::HbmBytes) || dialect.has(RsSwitch::Mx) || dialect.has(RsSwitch::Decode);
  if (!differs) return nullptr;
  switch (instruction.op) {
    case Op::H_PREFETCH_M:
      return prefetch_matrix;
    case Op::H_PREFETCH_V:
      return prefetch_vector;
    case Op::H_STORE_V:
      return store_vector;
    default:
      return nullptr;
  }
}

}  // namespace plena
