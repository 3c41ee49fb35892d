// Lower bounds: what the work of a run costs at least, whatever the schedule.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "plena/config/settings.h"
#include "plena/isa/dialect.h"
#include "plena/timing/hbm_model.h"

namespace plena {

/// Work of a run, independent of any clock.
struct Work {
  std::uint64_t multiply_adds = 0;
  std::uint64_t vector_rows = 0;   // V-type instructions, a row of VLEN lanes each
  std::uint64_t instructions = 0;  // all of them
  std::uint64_t hbm_bytes = 0;     // whole bursts
};

enum class Bound : std::uint8_t { Hbm, Array, Vector, Issue };
inline constexpr std::size_t kBoundCount = 4;
std::string_view bound_name(Bound bound);

struct Roofline {
  Work work;
  std::array<Cycle, kBoundCount> cycles{};  // by Bound: no run of this work takes fewer

  [[nodiscard]] Cycle operator[](Bound bound) const {
    return cycles[static_cast<std::size_t>(bound)];
  }
  /// The largest of them; of equal ones the first.
  [[nodiscard]] Bound binding() const;
  /// Share of the binding bound in `total` cycles, 0 to 1.
  [[nodiscard]] double achieved(Cycle total) const;
};

/// HBM: bytes at the memory's peak. Array: BLEN·MLEN multiply-adds a cycle. Vector: a row a cycle.
/// Issue: an instruction a cycle. All but the first are 0 for an overlap with as many units as
/// wanted.
Roofline make_roofline(const Work& work, const Settings& settings, const PeakRate& peak,
                       bool one_of_each_unit);

}  // namespace plena
