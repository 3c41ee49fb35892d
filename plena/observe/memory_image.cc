#include "plena/observe/memory_image.h"

#include <algorithm>
#include <array>
#include <bit>

#include "plena/base/files.h"
#include "plena/base/npy.h"
#include "plena/numerics/float_format.h"
#include "plena/observe/memory_elements.h"

namespace plena {

namespace {

// Elements converted at a time. A power of two not above a touched chunk of any SparseMemory, so
// that a piece is either inside one chunk or a whole number of them.
constexpr std::uint64_t kSparsePiece = 1U << 12;

// Under rs-memories an FP image holds binary16, whatever the memory holds (dialect-plena-rs.md 0).
Bytes from_binary16(const Machine& machine, std::span<const std::uint8_t> image) {
  const std::size_t unit = machine.file_element_bytes(MemoryKind::FpMem);
  Bytes out;
  for (const std::uint32_t half : element_bits(image, sizeof(std::uint16_t))) {
    const std::uint32_t bits = convert_fp(kFp16, machine.scalar_element(), half);
    const auto* little_endian = reinterpret_cast<const std::uint8_t*>(&bits);
    out.insert(out.end(), little_endian, little_endian + unit);
  }
  return out;
}

Status load_raw(Machine& machine, const MemorySpec& spec) {
  const auto file = RawFile::open(spec.file);
  if (!file) return tl::unexpected(file.error());
  const auto bytes = file->bytes();
  const std::size_t unit = machine.file_element_bytes(spec.memory);
  if (auto whole = check_whole(machine, spec.memory, bytes.size(), spec.file); !whole) return whole;
  if (auto fits = check_fits(machine, spec.memory, spec.first, bytes.size() / unit, spec.file);
      !fits) {
    return fits;
  }
  if (spec.memory == MemoryKind::FpMem && machine.dialect.has(RsSwitch::Memories)) {
    return machine.write_elements(spec.memory, spec.first, from_binary16(machine, bytes));
  }
  return machine.write_elements(spec.memory, spec.first, bytes);
}

Status load_npy(Machine& machine, const MemorySpec& spec) {
  const auto array = read_npy(spec.file);
  if (!array) return tl::unexpected(array.error());
  if (auto checked = check_array(machine, spec.memory, *array, spec.first, spec.file); !checked)
    return checked;
  const auto format = float_format(machine, spec.memory);
  const std::size_t unit = machine.file_element_bytes(spec.memory);
  Bytes bytes;
  for (std::uint64_t at = 0; at < array->size(); at += kSparsePiece) {
    bytes.clear();
    for (const double number :
         array_numbers(*array, at, std::min(kSparsePiece, array->size() - at))) {
      const auto bits = bits_of_number(format, array->type, number);
      if (!bits) {
        return fail(ErrorCode::Format, "{} holds {:.0f} at index {}, which {} cannot hold",
                    spec.file, number, at + bytes.size() / unit, memory_name(spec.memory));
      }
      const auto* little_endian = reinterpret_cast<const std::uint8_t*>(&*bits);
      bytes.insert(bytes.end(), little_endian, little_endian + unit);
    }
    if (auto written = machine.write_elements(spec.memory, spec.first + at, bytes); !written)
      return written;
  }
  return {};
}

// The memories that may be mostly untouched, and bytes of one stored element.
struct Storage {
  const SparseMemory* memory = nullptr;
  std::size_t element_bytes = 1;
};

Storage storage_of(const Machine& machine, MemoryKind memory) {
  switch (memory) {
    case MemoryKind::Vram:
      return {&machine.vram, storage_bytes(machine.vector_element())};
    case MemoryKind::Mram:
      return {&machine.mram, storage_bytes(machine.matrix_element())};
    case MemoryKind::Hbm:
      return {&machine.hbm, 1};
    case MemoryKind::FpMem:
    case MemoryKind::IntMem:
      return {};
  }
  return {};
}

// Elements from `at` on, at most `count`, that nothing ever wrote.
std::uint64_t untouched_elements(const Storage& storage, std::uint64_t at, std::uint64_t count) {
  if (storage.memory == nullptr) return 0;
  const std::uint64_t chunk_elements = storage.memory->chunk_bytes() / storage.element_bytes;
  std::uint64_t end = at;
  while (end < at + count &&
         !storage.memory->touched(static_cast<std::size_t>(end / chunk_elements))) {
    end = (end / chunk_elements + 1) * chunk_elements;
  }
  return std::min(end, at + count) - at;
}

NpyType npy_type(MemoryKind memory) {
  if (memory == MemoryKind::Hbm) return NpyType::of<std::uint8_t>();
  if (memory == MemoryKind::IntMem) return NpyType::of<std::uint32_t>();
  return NpyType::of<float>();
}

std::vector<std::uint64_t> npy_shape(const Machine& machine, const MemorySpec& spec,
                                     std::uint64_t count) {
  const std::uint64_t row = row_length(machine, spec.memory);
  if (row != 0 && spec.first % row == 0 && count % row == 0) return {count / row, row};
  return {count};
}

// State-file bytes as float32: exact, since no SRAM format is wider.
Bytes to_f32_bytes(std::span<const std::uint8_t> bytes, std::size_t unit, ElementType format) {
  Bytes out;
  out.reserve(bytes.size() / unit * sizeof(float));
  for (const std::uint32_t bits : element_bits(bytes, unit)) {
    const auto pattern = std::bit_cast<std::array<std::uint8_t, 4>>(decode_fp(format, bits));
    out.insert(out.end(), pattern.begin(), pattern.end());
  }
  return out;
}

}  // namespace

Status load_memory(Machine& machine, const MemorySpec& spec) {
  return spec.is_npy() ? load_npy(machine, spec) : load_raw(machine, spec);
}

std::uint64_t default_count(const Machine& machine, MemoryKind memory, std::uint64_t first) {
  const std::uint64_t size = machine.element_count(memory);
  const Storage storage = storage_of(machine, memory);
  std::uint64_t end = size;
  if (storage.memory != nullptr) {
    const std::uint64_t row = std::max<std::uint64_t>(row_length(machine, memory), 1);
    const std::uint64_t row_bytes = row * storage.element_bytes;
    end = (storage.memory->used_bytes() + row_bytes - 1) / row_bytes * row;
  }
  return end > first ? end - first : 0;
}

Status check_dump(const Machine& machine, const MemorySpec& spec) {
  return check_fits(machine, spec.memory, spec.first, spec.count.value_or(0), spec.file);
}

Status dump_memory(const Machine& machine, const MemorySpec& spec,
                   const std::atomic<bool>* interrupted) {
  if (auto fits = check_dump(machine, spec); !fits) return fits;
  const std::uint64_t count = spec.count.value_or(default_count(machine, spec.memory, spec.first));
  auto writer = FileWriter::create(spec.file);
  if (!writer) return forward_error(writer);
  if (spec.is_npy()) {
    const auto header = npy_header(npy_type(spec.memory), npy_shape(machine, spec, count));
    if (auto written = writer->append(header); !written) return written;
  }

  const std::size_t unit = machine.file_element_bytes(spec.memory);
  const auto format = spec.is_npy() ? float_format(machine, spec.memory) : std::nullopt;
  const std::size_t file_unit = format ? sizeof(float) : unit;
  const Storage storage = storage_of(machine, spec.memory);
  const std::uint64_t end = spec.first + count;
  for (std::uint64_t at = spec.first; at < end;) {
    if (interrupted != nullptr && interrupted->load(std::memory_order_relaxed))
      return fail(ErrorCode::Interrupted, "interrupted; {} was not written", spec.file);
    if (const std::uint64_t zeros = untouched_elements(storage, at, end - at); zeros != 0) {
      if (auto written = writer->append_zeros(zeros * file_unit); !written) return written;
      at += zeros;
      continue;
    }
    const std::uint64_t piece = std::min(end, (at / kSparsePiece + 1) * kSparsePiece) - at;
    const auto bytes = machine.read_elements(spec.memory, at, piece);
    if (!bytes) return tl::unexpected(bytes.error());
    const auto written = writer->append(format ? to_f32_bytes(*bytes, unit, *format) : *bytes);
    if (!written) return written;
    at += piece;
  }
  return writer->commit();
}

}  // namespace plena
