// When each part of the on-chip memories is written and read (timing.md, rules 2 and 3).
//
// Times only grow from one instruction to the next, and one in the past holds nobody up, so a
// record keeps the latest of each kind and nothing is ever cleared. Records are as coarse as
// possible and as fine as needed: a row of Vector SRAM, with BLEN-lane granules for the rows that
// were written or read in part; a tile of Matrix SRAM, which only whole prefetches write.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "plena/config/settings.h"
#include "plena/timing/lazy_array.h"
#include "plena/timing/unit.h"

namespace plena {

/// A cycle and whether a transfer decides it: 2·cycle + 1 if so. The largest of several stamps is
/// the latest one, and of equally late ones a transfer's. A stamp in flight names a row of a
/// transfer whose time is not known yet.
using Stamp = std::uint64_t;

constexpr Stamp stamp_at(Cycle cycle, bool of_transfer = false) {
  return cycle << 1 | (of_transfer ? 1 : 0);
}
constexpr Cycle cycle_of(Stamp stamp) {
  return stamp >> 1;
}
constexpr bool is_of_transfer(Stamp stamp) {
  return (stamp & 1) != 0;
}

inline constexpr Stamp kInFlight = Stamp{1} << 63;
constexpr Stamp in_flight(std::uint32_t ticket, std::uint32_t row) {
  return kInFlight | Stamp{ticket} << 32 | row;
}
constexpr bool is_in_flight(Stamp stamp) {
  return (stamp & kInFlight) != 0;
}
constexpr std::uint32_t ticket_of(Stamp stamp) {
  return static_cast<std::uint32_t>(stamp >> 32) & 0x7FFFFFFF;
}
constexpr std::uint32_t row_of_ticket(Stamp stamp) {
  return static_cast<std::uint32_t>(stamp);
}

/// Vector SRAM. Ranges are lanes of one row: `first` is an element address, first and lanes are
/// multiples of BLEN. `resolve(stamp)` waits for a row in flight and returns its time.
class VramTimes {
 public:
  static Result<VramTimes> create(const Settings& settings);

  struct Row {
    Stamp written;          // by the last whole-row write; may be in flight
    Stamp read;             // by whole-row reads
    Stamp written_in_part;  // largest of the granules'
    Stamp read_in_part;
    std::uint64_t granules;  // 1 + index of the first granule; 0: none

    /// For whole-row accesses: what a read and a write of it wait for.
    template <class Resolve>
    Stamp all_written(Resolve&& resolve) {
      settle(*this, resolve);
      return std::max(written, written_in_part);
    }
    template <class Resolve>
    Stamp all_touched(Resolve&& resolve) {
      settle(*this, resolve);
      return std::max(std::max(written, written_in_part), std::max(read, read_in_part));
    }
  };
  Row& row(std::uint64_t element) { return rows_[row_index(element)]; }

  /// When the last write to a range is done: what a read of it waits for.
  template <class Resolve>
  Stamp written(std::uint64_t first, std::uint32_t lanes, Resolve&& resolve) {
    Row& row = rows_[row_index(first)];
    if (lanes == vlen_) [[likely]]
      return row.all_written(resolve);
    settle(row, resolve);
    return std::max(row.written, granules_max(row, first, lanes, &Granule::written));
  }

  /// When the last write and the last read of a range are done: what a write to it waits for.
  template <class Resolve>
  Stamp touched(std::uint64_t first, std::uint32_t lanes, Resolve&& resolve) {
    Row& row = rows_[row_index(first)];
    if (lanes == vlen_) [[likely]]
      return row.all_touched(resolve);
    settle(row, resolve);
    return std::max(std::max(row.written, row.read),
                    std::max(granules_max(row, first, lanes, &Granule::written),
                             granules_max(row, first, lanes, &Granule::read)));
  }

  void write(std::uint64_t first, std::uint32_t lanes, Stamp done) {
    Row& row = rows_[row_index(first)];
    if (lanes == vlen_) [[likely]] {
      row.written = done;
    } else {
      raise_granules(row, first, lanes, &Granule::written, done);
      row.written_in_part = std::max(row.written_in_part, done);
    }
  }

  void read(std::uint64_t first, std::uint32_t lanes, Stamp done) {
    Row& row = rows_[row_index(first)];
    if (lanes == vlen_) [[likely]] {
      row.read = std::max(row.read, done);
    } else {
      raise_granules(row, first, lanes, &Granule::read, done);
      row.read_in_part = std::max(row.read_in_part, done);
    }
  }

  /// Replaces the stamp in flight `code` of the row at `first`, if it still stands there.
  void land(std::uint64_t first, Stamp code, Stamp done) {
    Row& row = rows_[row_index(first)];
    if (row.written == code) row.written = done;
  }

 private:
  struct Granule {
    Stamp written = 0;
    Stamp read = 0;
  };

  [[nodiscard]] std::uint64_t row_index(std::uint64_t element) const {
    return vlen_shift_ != 0 ? element >> vlen_shift_ : element / vlen_;
  }
  template <class Resolve>
  static void settle(Row& row, Resolve&& resolve) {
    if (is_in_flight(row.written)) [[unlikely]]
      row.written = resolve(row.written);
  }

  [[nodiscard]] Stamp granules_max(const Row& row, std::uint64_t first, std::uint32_t lanes,
                                   Stamp Granule::* time) const;
  void raise_granules(Row& row, std::uint64_t first, std::uint32_t lanes, Stamp Granule::* time,
                      Stamp done);

  LazyArray<Row> rows_;
  std::vector<Granule> granules_;  // VLEN/BLEN for each row that was touched in part
  std::uint32_t vlen_ = 0;
  std::uint32_t vlen_shift_ = 0;  // 0: VLEN is no power of two
  std::uint32_t blen_ = 0;
};

/// Matrix SRAM, tile by tile.
class MramTimes {
 public:
  static Result<MramTimes> create(const Settings& settings);

  /// `written` may be in flight; it then names the row of the transfer that becomes row 0.
  struct Tile {
    Stamp written;
    Stamp read;
  };
  Tile& tile(std::uint64_t element) {
    return tiles_[tile_shift_ != 0 ? element >> tile_shift_ : element / tile_elements_];
  }

 private:
  LazyArray<Tile> tiles_;
  std::uint64_t tile_elements_ = 1;
  std::uint32_t tile_shift_ = 0;  // 0: no power of two
};

/// INT_MEM or FP_MEM, entry by entry.
class EntryTimes {
 public:
  explicit EntryTimes(std::uint64_t entries) : entries_(entries) {}

  [[nodiscard]] Stamp written(std::uint64_t first, std::uint64_t count) const {
    Stamp latest = 0;
    for (std::uint64_t i = first; i < first + count; ++i)
      latest = std::max(latest, entries_[i].written);
    return latest;
  }
  [[nodiscard]] Stamp touched(std::uint64_t first, std::uint64_t count) const {
    Stamp latest = 0;
    for (std::uint64_t i = first; i < first + count; ++i)
      latest = std::max(latest, std::max(entries_[i].written, entries_[i].read));
    return latest;
  }
  void write(std::uint64_t first, std::uint64_t count, Stamp done) {
    for (std::uint64_t i = first; i < first + count; ++i) entries_[i].written = done;
  }
  void read(std::uint64_t first, std::uint64_t count, Stamp done) {
    for (std::uint64_t i = first; i < first + count; ++i)
      entries_[i].read = std::max(entries_[i].read, done);
  }

 private:
  struct Entry {
    Stamp written = 0;
    Stamp read = 0;
  };
  std::vector<Entry> entries_;
};

}  // namespace plena
