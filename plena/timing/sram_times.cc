#include "plena/timing/sram_times.h"

#include <bit>

namespace plena {

Result<VramTimes> VramTimes::create(const Settings& settings) {
  auto rows = LazyArray<Row>::create(settings.vector_sram_size);
  if (!rows) return tl::unexpected(std::move(rows).error());
  VramTimes times;
  times.rows_ = std::move(*rows);
  times.vlen_ = settings.vlen;
  times.blen_ = settings.blen;
  if (std::has_single_bit(settings.vlen))
    times.vlen_shift_ = static_cast<std::uint32_t>(std::countr_zero(settings.vlen));
  return times;
}

Stamp VramTimes::granules_max(const Row& row, std::uint64_t first, std::uint32_t lanes,
                              Stamp Granule::* time) const {
  if (row.granules == 0) return 0;
  const std::uint64_t begin = row.granules - 1 + first % vlen_ / blen_;
  Stamp latest = 0;
  for (std::uint64_t i = begin; i < begin + lanes / blen_; ++i)
    latest = std::max(latest, granules_[i].*time);
  return latest;
}

void VramTimes::raise_granules(Row& row, std::uint64_t first, std::uint32_t lanes,
                               Stamp Granule::* time, Stamp done) {
  if (row.granules == 0) {
    row.granules = granules_.size() + 1;
    granules_.resize(granules_.size() + vlen_ / blen_);
  }
  const std::uint64_t begin = row.granules - 1 + first % vlen_ / blen_;
  for (std::uint64_t i = begin; i < begin + lanes / blen_; ++i)
    granules_[i].*time = std::max(granules_[i].*time, done);
}

Result<MramTimes> MramTimes::create(const Settings& settings) {
  auto tiles = LazyArray<Tile>::create(settings.matrix_sram_size / settings.mlen + 1);
  if (!tiles) return tl::unexpected(std::move(tiles).error());
  MramTimes times;
  times.tiles_ = std::move(*tiles);
  times.tile_elements_ = std::uint64_t{settings.mlen} * settings.mlen;
  if (std::has_single_bit(times.tile_elements_))
    times.tile_shift_ = static_cast<std::uint32_t>(std::countr_zero(times.tile_elements_));
  return times;
}

}  // namespace plena
