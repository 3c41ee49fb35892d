// Memories against files: --expect.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "plena/base/error.h"
#include "plena/machine/machine.h"
#include "plena/observe/memory_spec.h"

namespace plena {

/// |got - expected| <= absolute + relative * |expected| is close enough.
struct Tolerance {
  double absolute = 0;
  double relative = 0;

  [[nodiscard]] bool exact() const { return absolute == 0 && relative == 0; }
};

/// One element that differs.
struct Mismatch {
  std::uint64_t address = 0;
  std::string expected;  // number and, where the file holds them, bits
  std::string got;
  double difference = 0;  // infinite where only one of the two is a NaN
};

struct Comparison {
  std::uint64_t elements = 0;
  std::uint64_t mismatches = 0;
  std::optional<Mismatch> worst;  // of the largest difference the first
};

/// Whether a comparison with this file is possible: what compare_memory() would complain about.
Status check_comparable(const Machine& machine, const MemorySpec& spec);

/// Compares the elements from spec.first on with those of the file, which decides how many. A raw
/// file holds bit patterns: without a tolerance those must be equal, so that -0 is not 0. The
/// values of an .npy array are taken as they are, not rounded to the memory's format first. A NaN
/// equals every NaN and nothing else. Errors are those of load_memory().
Result<Comparison> compare_memory(const Machine& machine, const MemorySpec& spec,
                                  const Tolerance& tolerance);

/// `3 of 640 elements differ; worst at 130 (row 2, lane 2): expected 1.5, got 1.25 (0x3FA0)`, or
/// `640 elements match`.
std::string describe(const Comparison& comparison, const Machine& machine, MemoryKind memory);

}  // namespace plena
