#include "plena/machine/machine.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "plena/numerics/float_format.h"
#include "plena/numerics/rs_formats.h"

namespace plena {

namespace {

// Touched-chunk sizes: small enough that a state comparison of a small run is quick, large enough
// that 128 GiB of HBM need only 128 KiB of marks.
constexpr std::size_t kHbmChunk = std::size_t{1} << 20;
constexpr std::size_t kSramChunk = std::size_t{1} << 14;

constexpr std::uint32_t kRsMemoryDepth = 1024;  // rs-memories: INT_MEM and FP_MEM

// Elements are kept in 2 or 4 bytes and written to state files in 1, 2 or 4.
void widen(std::span<const std::uint8_t> from, std::size_t from_bytes, std::uint8_t* to,
           std::size_t to_bytes) {
  if (from_bytes == to_bytes) {
    std::memcpy(to, from.data(), from.size());
    return;
  }
  for (std::size_t i = 0; i * from_bytes < from.size(); ++i) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, from.data() + i * from_bytes, from_bytes);
    std::memcpy(to + i * to_bytes, &bits, to_bytes);
  }
}

void narrow(const std::uint8_t* from, std::size_t from_bytes, std::vector<std::uint8_t>& to,
            std::size_t to_bytes) {
  if (from_bytes == to_bytes) {
    std::memcpy(to.data(), from, to.size());
    return;
  }
  for (std::size_t i = 0; i * to_bytes < to.size(); ++i) {
    std::memcpy(to.data() + i * to_bytes, from + i * from_bytes, to_bytes);
  }
}

}  // namespace

std::size_t state_file_bytes(ElementType element) {
  return element.width() <= 8 ? 1 : element.width() <= 16 ? 2 : 4;
}

std::string_view array_shape_name(ArrayShape shape) {
  switch (shape) {
    case ArrayShape::Clear:
      return "clear";
    case ArrayShape::Block:
      return "BLEN x BLEN";
    case ArrayShape::Heads:
      return "H x MLEN x MLEN";
    case ArrayShape::Row:
      return "MLEN";
    case ArrayShape::HeadRows:
      return "H x MLEN";
    case ArrayShape::BlockRow:
      return "BLEN";
  }
  return "";
}

Settings settings_for(Settings settings, const Dialect& dialect) {
  if (!dialect.has(RsSwitch::HbmBytes) || settings.mlen == 0) return settings;
  const std::uint64_t amount = std::max(settings.hbm_m_prefetch_amount, 1U);
  const std::uint64_t rows = (amount + settings.mlen - 1) / settings.mlen * settings.mlen;
  if (rows <= std::numeric_limits<std::uint32_t>::max())
    settings.hbm_m_prefetch_amount = static_cast<std::uint32_t>(rows);
  return settings;
}

Result<Machine> Machine::create(const Settings& given, const Dialect& dialect) {
  const Settings settings = settings_for(given, dialect);
  if (auto checked = check(settings); !checked) return tl::unexpected(checked.error());
  if (dialect.has(RsSwitch::Mx)) {
    if (auto checked = check_rs_types(settings); !checked) return tl::unexpected(checked.error());
  }
  Machine m;
  m.settings = settings;
  m.dialect = dialect;
  const bool rs_memories = dialect.has(RsSwitch::Memories);
  m.int_mem.assign(rs_memories ? kRsMemoryDepth : settings.int_sram_depth, 0);
  m.fp_mem.assign(rs_memories ? kRsMemoryDepth : settings.fp_sram_depth, 0);
  if (dialect.has(RsSwitch::Registers)) {  // nothing is ever "unset" there
    m.stride = 1;
    m.a_set = 0xFFFF;
    m.scale_set = m.stride_set = true;
  }

  auto vram =
      SparseMemory::reserve(m.vram_elements() * storage_bytes(m.vector_element()), kSramChunk);
  if (!vram) return forward_error(vram);
  auto mram =
      SparseMemory::reserve(m.mram_elements() * storage_bytes(m.matrix_element()), kSramChunk);
  if (!mram) return forward_error(mram);
  auto hbm = SparseMemory::reserve(settings.hbm_size, kHbmChunk);
  if (!hbm) return forward_error(hbm);
  m.vram = std::move(*vram);
  m.mram = std::move(*mram);
  m.hbm = std::move(*hbm);

  m.array.block.assign(static_cast<std::size_t>(settings.blen) * settings.blen, 0.0F);
  m.array.row.assign(settings.mlen, 0.0F);
  m.array.head_rows.assign(static_cast<std::size_t>(settings.heads()) * settings.mlen, 0.0F);
  m.array.block_row.assign(settings.blen, 0.0F);
  return m;
}

Result<Machine> Machine::clone() const {
  Machine copy;
  copy.settings = settings;
  copy.dialect = dialect;
  copy.gp = gp;
  copy.f = f;
  copy.a = a;
  copy.scale = scale;
  copy.stride = stride;
  copy.v_mask = v_mask;
  copy.a_set = a_set;
  copy.scale_set = scale_set;
  copy.stride_set = stride_set;
  copy.int_mem = int_mem;
  copy.fp_mem = fp_mem;
  copy.array = array;
  copy.pc = pc;
  copy.retired = retired;
  copy.loops = loops;
  auto vram_copy = vram.clone();
  if (!vram_copy) return forward_error(vram_copy);
  auto mram_copy = mram.clone();
  if (!mram_copy) return forward_error(mram_copy);
  auto hbm_copy = hbm.clone();
  if (!hbm_copy) return forward_error(hbm_copy);
  copy.vram = std::move(*vram_copy);
  copy.mram = std::move(*mram_copy);
  copy.hbm = std::move(*hbm_copy);
  return copy;
}

std::uint64_t Machine::element_count(MemoryKind kind) const {
  switch (kind) {
    case MemoryKind::Vram:
      return vram_elements();
    case MemoryKind::Mram:
      return mram_elements();
    case MemoryKind::FpMem:
      return fp_mem.size();
    case MemoryKind::IntMem:
      return int_mem.size();
    case MemoryKind::Hbm:
      return hbm.size();
  }
  return 0;
}

std::size_t Machine::file_element_bytes(MemoryKind kind) const {
  switch (kind) {
    case MemoryKind::Vram:
      return state_file_bytes(vector_element());
    case MemoryKind::Mram:
      return state_file_bytes(matrix_element());
    case MemoryKind::FpMem:
      return state_file_bytes(scalar_element());
    case MemoryKind::IntMem:
      return sizeof(std::uint32_t);
    case MemoryKind::Hbm:
      return 1;
  }
  return 1;
}

namespace {

Status check_range(const Machine& m, MemoryKind kind, std::uint64_t first, std::uint64_t count) {
  const std::uint64_t size = m.element_count(kind);
  if (first > size || count > size - first) {
    return fail(ErrorCode::Usage, "{} elements at {} leave {}, which has {}", count, first,
                memory_name(kind), size);
  }
  return {};
}

}  // namespace

Status Machine::write_elements(MemoryKind kind, std::uint64_t first,
                               std::span<const std::uint8_t> bytes) {
  const std::size_t unit = file_element_bytes(kind);
  if (bytes.size() % unit != 0) {
    return fail(ErrorCode::Format, "{} bytes are not whole elements of {}, which take {}",
                bytes.size(), memory_name(kind), unit);
  }
  const std::uint64_t count = bytes.size() / unit;
  if (auto inside = check_range(*this, kind, first, count); !inside) return inside;
  if (count == 0) return {};
  const auto into = [&](SparseMemory& memory, std::size_t stored) {
    widen(bytes, unit, memory.writable(first * stored, count * stored), stored);
  };
  switch (kind) {
    case MemoryKind::Vram:
      into(vram, storage_bytes(vector_element()));
      break;
    case MemoryKind::Mram:
      into(mram, storage_bytes(matrix_element()));
      break;
    case MemoryKind::Hbm:
      into(hbm, 1);
      break;
    case MemoryKind::FpMem:
      widen(bytes, unit, reinterpret_cast<std::uint8_t*>(fp_mem.data() + first),
            sizeof(std::uint32_t));
      break;
    case MemoryKind::IntMem:
      widen(bytes, unit, reinterpret_cast<std::uint8_t*>(int_mem.data() + first),
            sizeof(std::uint32_t));
      break;
  }
  return {};
}

Result<std::vector<std::uint8_t>> Machine::read_elements(MemoryKind kind, std::uint64_t first,
                                                         std::uint64_t count) const {
  if (auto inside = check_range(*this, kind, first, count); !inside)
    return tl::unexpected(inside.error());
  const std::size_t unit = file_element_bytes(kind);
  std::vector<std::uint8_t> bytes(count * unit);
  if (count == 0) return bytes;
  const auto from = [&](const SparseMemory& memory, std::size_t stored) {
    narrow(memory.data() + first * stored, stored, bytes, unit);
  };
  switch (kind) {
    case MemoryKind::Vram:
      from(vram, storage_bytes(vector_element()));
      break;
    case MemoryKind::Mram:
      from(mram, storage_bytes(matrix_element()));
      break;
    case MemoryKind::Hbm:
      from(hbm, 1);
      break;
    case MemoryKind::FpMem:
      narrow(reinterpret_cast<const std::uint8_t*>(fp_mem.data() + first), sizeof(std::uint32_t),
             bytes, unit);
      break;
    case MemoryKind::IntMem:
      narrow(reinterpret_cast<const std::uint8_t*>(int_mem.data() + first), sizeof(std::uint32_t),
             bytes, unit);
      break;
  }
  return bytes;
}

std::optional<MemoryKind> parse_memory_kind(std::string_view name) {
  if (name == "vram") return MemoryKind::Vram;
  if (name == "mram") return MemoryKind::Mram;
  if (name == "fp" || name == "fp_mem") return MemoryKind::FpMem;
  if (name == "int" || name == "int_mem") return MemoryKind::IntMem;
  if (name == "hbm") return MemoryKind::Hbm;
  return std::nullopt;
}

std::string_view memory_name(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::Vram:
      return "Vector SRAM";
    case MemoryKind::Mram:
      return "Matrix SRAM";
    case MemoryKind::FpMem:
      return "FP_MEM";
    case MemoryKind::IntMem:
      return "INT_MEM";
    case MemoryKind::Hbm:
      return "HBM";
  }
  return "";
}

}  // namespace plena
