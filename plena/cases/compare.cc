#include "plena/cases/compare.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "plena/numerics/float_format.h"

namespace plena {

namespace {

struct Difference {
  std::uint64_t count = 0;
  std::uint64_t first = 0;  // element
  std::uint32_t expected = 0;
  std::uint32_t got = 0;

  void note(std::uint64_t element, std::uint32_t want, std::uint32_t have) {
    if (count++ == 0) {
      first = element;
      expected = want;
      got = have;
    }
  }
};

std::uint32_t element_at(const std::uint8_t* bytes, std::size_t unit) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes, unit);
  return value;
}

Difference compare_sparse(const SparseMemory& expected, const SparseMemory& got, std::size_t unit) {
  Difference difference;
  for (std::size_t chunk = 0; chunk < expected.chunk_count(); ++chunk) {
    if (!expected.touched(chunk) && !got.touched(chunk)) continue;
    const std::uint64_t offset = std::uint64_t{chunk} * expected.chunk_bytes();
    const std::uint8_t* want = expected.data() + offset;
    const std::uint8_t* have = got.data() + offset;
    const std::size_t size = expected.chunk_size(chunk);
    if (std::memcmp(want, have, size) == 0) continue;
    for (std::size_t at = 0; at < size; at += unit) {
      if (std::memcmp(want + at, have + at, unit) == 0) continue;
      difference.note((offset + at) / unit, element_at(want + at, unit),
                      element_at(have + at, unit));
    }
  }
  return difference;
}

Difference compare_vector(const std::vector<std::uint32_t>& expected,
                          const std::vector<std::uint32_t>& got) {
  Difference difference;
  for (std::size_t i = 0; i < std::min(expected.size(), got.size()); ++i) {
    if (expected[i] != got[i]) difference.note(i, expected[i], got[i]);
  }
  return difference;
}

void report(MemoryKind kind, const Difference& difference, std::vector<std::string>& lines) {
  if (difference.count == 0) return;
  lines.push_back(fmt::format(
      "{}: {} element(s) differ, the first at {}: expected 0x{:X}, got 0x{:X}", memory_name(kind),
      difference.count, difference.first, difference.expected, difference.got));
}

}  // namespace

std::vector<std::string> memory_differences(const Machine& expected, const Machine& got) {
  std::vector<std::string> lines;
  report(MemoryKind::Vram,
         compare_sparse(expected.vram, got.vram, storage_bytes(got.vector_element())), lines);
  report(MemoryKind::Mram,
         compare_sparse(expected.mram, got.mram, storage_bytes(got.matrix_element())), lines);
  report(MemoryKind::FpMem, compare_vector(expected.fp_mem, got.fp_mem), lines);
  report(MemoryKind::IntMem, compare_vector(expected.int_mem, got.int_mem), lines);
  report(MemoryKind::Hbm, compare_sparse(expected.hbm, got.hbm, 1), lines);
  return lines;
}

}  // namespace plena
