// Transfers between HBM and the tile SRAMs (semantics 5.5 to 5.7, 6.9, 6.10).
#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

#include "plena/sim/prepared.h"

namespace plena {

namespace {

// One H-type access: `rows` rows of `length` elements. Elements count from the base address.
struct Access {
  const HbmCodec& codec;
  std::uint64_t base = 0;    // byte address
  std::uint64_t first = 0;   // element of row 0
  std::uint64_t stride = 0;  // elements between rows
  std::uint64_t rows = 0;
  std::uint64_t length = 0;

  [[nodiscard]] std::uint64_t row_start(std::uint64_t row) const { return first + row * stride; }
};

Access make_access(const Execution& x, const Prepared& i, const HbmCodec& codec, std::uint64_t rows,
                   std::uint64_t length) {
  const std::uint64_t stride = i.select != 0 ? x.machine.stride : length;
  return {codec, x.machine.a[i.rs2], x.gp(i.rs1), stride, rows, length};
}

constexpr std::array<std::string_view, 16> kAddressRegisters = {
    "a0", "a1", "a2",  "a3",  "a4",  "a5",  "a6",  "a7",
    "a8", "a9", "a10", "a11", "a12", "a13", "a14", "a15"};

void require_set(Execution& x, bool set, std::string_view name, const char* setter) {
  x.require(set, TrapCause::UnsetRegister, [&] {
    return std::pair(fmt::format("{} was never set", name),
                     fmt::format("{} comes before its use (semantics 7)", setter));
  });
}

// Bytes base + offset … base + offset + count - 1 lie inside HBM; nothing wraps (semantics 5.6).
bool inside_hbm(const Execution& x, std::uint64_t base, std::uint64_t offset_end) {
  const std::uint64_t size = x.program.settings.hbm_size;
  return base <= size && offset_end <= size - base;
}

void require_access(Execution& x, const Prepared& i, const Access& access) {
  const DataType& type = access.codec.hbm_type();
  require_set(x, (x.machine.a_set >> i.rs2 & 1) != 0, kAddressRegisters[i.rs2], "C_SET_ADDR_REG");
  if (i.select != 0) require_set(x, x.machine.stride_set, "STRIDE_REG", "C_SET_STRIDE_REG");
  if (type.is_mx()) require_set(x, x.machine.scale_set, "SCALE_REG", "C_SET_SCALE_REG");
  // Rows ascend, so that the last one reaches farthest.
  const std::uint64_t last = access.row_start(access.rows - 1) + access.length - 1;
  const auto describe = [&](const char* what) {
    return std::pair(
        fmt::format("{} {} of base 0x{:X}", what, last, access.base),
        fmt::format("HBM has 0x{:X} bytes (semantics 5.6)", x.program.settings.hbm_size));
  };
  x.require(inside_hbm(x, access.base, ((last + 1) * type.width() + 7) / 8),
            TrapCause::HbmOutOfRange, [&] { return describe("element"); });
  if (type.is_mx()) {
    x.require(inside_hbm(x, access.base, x.machine.scale + access.codec.block().quotient(last) + 1),
              TrapCause::HbmOutOfRange, [&] { return describe("the scale of element"); });
  }
}

const std::uint8_t* element_bytes(const Execution& x, const Access& access, std::uint64_t element) {
  return x.machine.hbm.data() + access.base + element * access.codec.hbm_type().width() / 8;
}

const std::uint8_t* scale_bytes(const Execution& x, const Access& access, std::uint64_t element) {
  const DataType& type = access.codec.hbm_type();
  if (!type.is_mx()) return nullptr;
  return x.machine.hbm.data() + access.base + x.machine.scale +
         access.codec.block().quotient(element);
}

void tell_row(const Execution& x, const Access& access, std::uint64_t row, bool write) {
  if (x.observer == nullptr) return;
  const DataType& type = access.codec.hbm_type();
  const std::uint64_t first = access.row_start(row);
  const std::uint64_t last = first + access.length - 1;
  HbmRow moved{.write = write};
  moved.element_address = access.base + first * type.width() / 8;
  moved.element_bytes = access.base + ((last + 1) * type.width() + 7) / 8 - moved.element_address;
  if (type.is_mx()) {
    moved.scale_address = access.base + x.machine.scale + first / type.block;
    moved.scale_bytes = last / type.block - first / type.block + 1;
  }
  x.observer->moved_row(moved);
}

// Rows a thread decodes at a time of a tile that several share.
constexpr std::size_t kSharedRows = 64;

// Rows begin … end - 1 of an access to the rows at `to`.
void decode_rows(const Execution& x, const Access& access, std::uint64_t begin, std::uint64_t end,
                 std::uint8_t* to, std::size_t row_bytes) {
  const auto decode = [&](std::size_t first, std::size_t count) {
    for (std::size_t row = first; row < first + count; ++row) {
      const std::uint64_t element = access.row_start(begin + row);
      access.codec.decode(element_bytes(x, access, element), scale_bytes(x, access, element),
                          element, access.length, to + row * row_bytes);
    }
  };
  if (x.workers == nullptr) return decode(0, end - begin);
  x.workers->split(end - begin, kSharedRows, access.length, decode);
}

void tell_rows(const Execution& x, const Access& access) {
  if (x.observer == nullptr) return;
  for (std::uint64_t row = 0; row < access.rows; ++row) tell_row(x, access, row, false);
}

// The bytes of the tile an access starts with; its codec is null where they cannot be multiplied as
// they lie.
StreamedTile streamed_tile(const Execution& x, const Access& access) {
  const DataType& type = access.codec.hbm_type();
  const Divisor& block = access.codec.block();
  if (!block.divides(access.first) || !block.divides(access.stride)) return {};
  const std::uint64_t last = access.row_start(x.program.mlen - 1) + access.length;
  StreamedTile tile{.codec = &access.codec};
  tile.rows.elements = element_bytes(x, access, access.first);
  tile.rows.element_pitch = access.stride * type.width() / 8;
  tile.elements_begin = access.base + access.first * type.width() / 8;
  tile.elements_end = access.base + last * type.width() / 8;
  if (!type.is_mx()) return tile;
  tile.rows.scales = scale_bytes(x, access, access.first);
  tile.rows.scale_pitch = block.quotient(access.stride);
  tile.scales_begin = access.base + x.machine.scale + block.quotient(access.first);
  tile.scales_end = access.base + x.machine.scale + block.quotient(last);
  return tile;
}

// The tile an access starts with, as the cache holds it after this; null where it does not.
CachedTile* cached_tile(Execution& x, const Access& access, bool key_value, bool streams) {
  const std::uint64_t scales = access.codec.hbm_type().is_mx() ? access.base + x.machine.scale : 0;
  const TileSource source{access.base, scales, access.first, access.stride, key_value};
  const std::uint32_t mlen = x.program.mlen;
  const std::size_t row_bytes = mlen * x.program.matrix_bytes;
  CachedTile* tile = x.tile_cache->find(source);
  TileRows rows{0, mlen};
  if (tile != nullptr) {
    rows = x.tile_cache->stale_rows(*tile);
  } else {
    tile = x.tile_cache->admit(source, streams);
    if (tile == nullptr) return nullptr;
  }
  if (!rows.empty()) {
    x.deferred.finish();
    x.shown.settle(*tile);
    decode_rows(x, access, rows.begin, rows.end, tile->rows + rows.begin * row_bytes, row_bytes);
  }
  x.tile_cache->refreshed(*tile, rows);
  return tile;
}

// Loads tile `place` of Matrix SRAM with the first MLEN rows of an access.
void load_tile(Execution& x, const Access& access, bool key_value, std::uint64_t place) {
  const auto& p = x.program;
  const std::size_t row_bytes = p.mlen * p.matrix_bytes;
  const std::size_t tile_bytes = row_bytes * p.mlen;
  x.deferred.before_load(place);
  x.shown.hide(place);
  x.sweeps.before_load(place);
  x.turned.before_load(place);
  const StreamedTile bytes = x.streams && !key_value && x.shown.can_show(place)
                                 ? streamed_tile(x, access)
                                 : StreamedTile{};
  const bool streams = bytes.codec != nullptr;
  CachedTile* tile = x.tile_cache != nullptr ? cached_tile(x, access, key_value, streams) : nullptr;
  if (tile != nullptr && x.shown.can_show(place)) return x.shown.show(place, *tile);
  if (tile == nullptr && streams) return x.shown.show(place, bytes);
  std::uint8_t* to = x.machine.mram.writable(place * tile_bytes, tile_bytes);
  if (tile != nullptr) {
    std::memcpy(to, tile->rows, tile_bytes);
  } else {
    decode_rows(x, access, 0, p.mlen, to, row_bytes);
  }
}

bool prefetch_matrix(Execution& x, const Prepared& i) {
  const auto& p = x.program;
  const HbmCodec& codec = i.order != 0 ? p.matrix_kv_codec : p.weight_codec;
  const Access access = make_access(x, i, codec, p.settings.hbm_m_prefetch_amount, p.mlen);
  const std::uint64_t rd = x.gp(i.rd);
  const std::uint64_t elements = access.rows * p.mlen;
  require_access(x, i, access);
  x.require(p.tile_divisor.divides(rd), TrapCause::MisalignedAddress, [&] {
    return std::pair(fmt::format("gp<rd> = {}", rd),
                     fmt::format("a tile is loaded at a multiple of MLEN^2 = {} (semantics 6.9)",
                                 p.tile_elements));
  });
  x.require(rd + elements <= p.mram_elements, TrapCause::AddressOutOfRange, [&] {
    return std::pair(fmt::format("gp<rd> = {}, {} rows", rd, access.rows),
                     fmt::format("Matrix SRAM has {} elements (semantics 6.15)", p.mram_elements));
  });
  if (x.faulted) return false;
  Access tile = access;
  for (std::uint64_t row = 0; row < access.rows; row += p.mlen) {
    tile.first = access.row_start(row);
    load_tile(x, tile, i.order != 0, p.tile_divisor.quotient(rd) + row / p.mlen);
  }
  tell_rows(x, access);
  return true;
}

const HbmCodec& vector_codec(const Execution& x, const Prepared& i) {
  return i.order != 0 ? x.program.vector_kv_codec : x.program.activation_codec;
}

bool prefetch_vector(Execution& x, const Prepared& i) {
  const auto& p = x.program;
  const Access access =
      make_access(x, i, vector_codec(x, i), p.settings.hbm_v_prefetch_amount, p.vlen);
  const std::uint64_t rd = x.gp(i.rd);
  require_access(x, i, access);
  x.require_rows(rd, access.rows, "gp<rd>");
  if (x.faulted) return false;
  decode_rows(x, access, 0, access.rows, x.writable_vram(rd, access.rows * p.vlen),
              p.vlen * p.vector_bytes);
  tell_rows(x, access);
  return true;
}

// Stores quantise whole blocks and write whole bytes (semantics 5.7).
void require_whole_blocks(Execution& x, const Access& access) {
  const DataType& type = access.codec.hbm_type();
  const std::uint64_t unit = type.is_mx() ? type.block : 1;
  const auto whole = [&](std::uint64_t elements) {
    return elements % unit == 0 && elements * type.width() % 8 == 0;
  };
  // Row starts are first + row·stride: with one row only `first` counts, else `stride` too.
  bool aligned = whole(access.length);
  for (std::uint64_t row = 0; aligned && row < access.rows; ++row)
    aligned = whole(access.row_start(row));
  x.require(aligned, TrapCause::MxBlockMisaligned, [&] {
    return std::pair(
        fmt::format("rows of {} elements from element {}, {} apart", access.length, access.first,
                    access.stride),
        fmt::format("a stored row is whole blocks of {} and whole bytes (semantics 5.7)", unit));
  });
}

// What Matrix SRAM shows of the bytes that an access is about to write.
void settle_written(Execution& x, const Access& access) {
  const DataType& type = access.codec.hbm_type();
  const std::uint64_t end = access.row_start(access.rows - 1) + access.length;
  x.shown.settle_bytes(access.base + access.first * type.width() / 8,
                       access.base + end * type.width() / 8);
  if (!type.is_mx()) return;
  const std::uint64_t scales = access.base + x.machine.scale;
  x.shown.settle_bytes(scales + access.first / type.block, scales + end / type.block);
}

// Bytes that HBM already has are not written: what was decoded from them stays current.
void write_changes(Machine& machine, std::uint64_t at, const std::uint8_t* bytes,
                   std::size_t count) {
  if (std::memcmp(machine.hbm.data() + at, bytes, count) == 0) return;
  std::memcpy(machine.hbm.writable(at, count), bytes, count);
}

bool store_vector(Execution& x, const Prepared& i) {
  const auto& p = x.program;
  const Access access =
      make_access(x, i, vector_codec(x, i), p.settings.hbm_v_writeback_amount, p.vlen);
  const std::uint64_t rd = x.gp(i.rd);
  require_access(x, i, access);
  x.require_rows(rd, access.rows, "gp<rd>");
  require_whole_blocks(x, access);
  if (x.faulted) return false;

  const DataType& type = access.codec.hbm_type();
  const std::size_t element_count = access.length * type.width() / 8;
  const std::size_t scale_count = type.is_mx() ? access.length / type.block : 0;
  settle_written(x, access);
  for (std::uint64_t row = 0; row < access.rows; ++row) {
    access.codec.encode(x.vram(rd + row * p.vlen), access.length, x.row_bytes.data(),
                        x.scales.data());
    const std::uint64_t element = access.row_start(row);
    // Scales before elements: where they overlap the elements stand (semantics 5.7).
    if (scale_count != 0) {
      const std::uint64_t at = access.base + x.machine.scale + element / type.block;
      write_changes(x.machine, at, x.scales.data(), scale_count);
    }
    const std::uint64_t at = access.base + element * type.width() / 8;
    write_changes(x.machine, at, x.row_bytes.data(), element_count);
    tell_row(x, access, row, true);
  }
  return true;
}

}  // namespace

Handler memory_handler(const Instruction& instruction, const Dialect& dialect) {
  if (Handler rs = rs_memory_handler(instruction, dialect)) return rs;
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
