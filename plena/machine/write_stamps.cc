#include "plena/machine/write_stamps.h"

#include <algorithm>
#include <atomic>
#include <utility>

namespace plena {

namespace {

using Time = std::uint64_t;

constexpr std::size_t kStampChunk = std::size_t{1} << 20;

Result<SparseMemory> reserve_stamps(std::uint64_t bytes, std::uint64_t unit) {
  return SparseMemory::reserve((bytes / unit + 1) * sizeof(Time), kStampChunk);
}

// Stamps of the units that `count` > 0 bytes at `offset` lie in.
struct Units {
  Units(std::uint64_t offset, std::uint64_t bytes, std::uint64_t unit)
      : first(offset / unit), count((offset + bytes - 1) / unit - first + 1) {}

  void set(SparseMemory& stamps, Time time) const {
    std::fill_n(
        reinterpret_cast<Time*>(stamps.writable(first * sizeof(Time), count * sizeof(Time))), count,
        time);
  }
  [[nodiscard]] const Time* in(const SparseMemory& stamps) const {
    return reinterpret_cast<const Time*>(stamps.data()) + first;
  }

  std::uint64_t first;
  std::uint64_t count;
};

std::uint64_t next_identity() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

}  // namespace

WriteStamps::WriteStamps(SparseMemory granules, SparseMemory regions)
    : granules_(std::move(granules)), regions_(std::move(regions)), identity_(next_identity()) {}

Result<std::unique_ptr<WriteStamps>> WriteStamps::reserve(std::uint64_t bytes) {
  auto granules = reserve_stamps(bytes, kGranule);
  if (!granules) return forward_error(granules);
  auto regions = reserve_stamps(bytes, kRegion);
  if (!regions) return forward_error(regions);
  return std::unique_ptr<WriteStamps>(new WriteStamps(std::move(*granules), std::move(*regions)));
}

void WriteStamps::mark(std::uint64_t offset, std::uint64_t count) {
  ++now_;
  Units(offset, count, kGranule).set(granules_, now_);
  Units(offset, count, kRegion).set(regions_, now_);
}

bool WriteStamps::perhaps_written(std::uint64_t offset, std::uint64_t count, Time time) const {
  const Units units(offset, count, kRegion);
  const Time* stamps = units.in(regions_);
  return std::any_of(stamps, stamps + units.count, [&](Time stamp) { return stamp > time; });
}

WriteStamps::Range WriteStamps::written(std::uint64_t offset, std::uint64_t count,
                                        Time time) const {
  const Units units(offset, count, kGranule);
  const Time* stamps = units.in(granules_);
  std::uint64_t begin = 0;
  std::uint64_t end = units.count;
  while (begin < end && stamps[begin] <= time) ++begin;
  if (begin == end) return {};
  while (stamps[end - 1] <= time) --end;
  return {std::max(offset, (units.first + begin) * kGranule),
          std::min(offset + count, (units.first + end) * kGranule)};
}

}  // namespace plena
