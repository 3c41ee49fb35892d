#include "plena/sim/tile_cache.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "plena/numerics/float_format.h"
#include "plena/sim/prepared.h"

namespace plena {

namespace {

// A full cache takes in one of so many tiles it did not find. A program that walks over more tiles
// than there is room for would otherwise drive out each one just before its turn comes again.
constexpr std::uint32_t kRefusals = 32;

// Up to so many changed rows are written into a transposed copy; more, and it is made anew.
constexpr std::uint32_t kPatchedRows = 8;

constexpr std::size_t kWordBits = 64;

std::uint64_t byte_of(std::uint64_t element, std::uint32_t width) {
  return element * width / 8;
}

// A tile whose rows lie farther apart is looked at row by row at once.
constexpr std::uint64_t kShortSpan = 16 * WriteStamps::kRegion;

// The hull of two runs of rows.
TileRows joined(TileRows a, TileRows b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  return {std::min(a.begin, b.begin), std::max(a.end, b.end)};
}

// Looks for writes in the bytes a tile was decoded from.
class StaleRows {
 public:
  StaleRows(const WriteStamps& stamps, const CachedTile& tile, DataType type, std::uint32_t mlen)
      : stamps_(stamps),
        source_(tile.source),
        since_(tile.current_at),
        type_(type),
        mlen_(mlen),
        last_(source_.first + source_.stride * (mlen - 1) + mlen - 1) {}

  [[nodiscard]] TileRows find() const {
    const Bytes elements = element_bytes(source_.first, last_);
    const Bytes scales = scale_bytes(source_.first, last_);
    const bool contiguous = source_.stride == mlen_;
    if ((contiguous || elements.count <= kShortSpan) &&
        !stamps_.perhaps_written(elements.at, elements.count, since_) &&
        (scales.count == 0 || !stamps_.perhaps_written(scales.at, scales.count, since_))) {
      return {};
    }
    return contiguous ? joined(rows_of_elements(elements), rows_of_scales(scales)) : row_by_row();
  }

 private:
  struct Bytes {
    std::uint64_t at = 0;
    std::uint64_t count = 0;
  };

  [[nodiscard]] Bytes element_bytes(std::uint64_t first, std::uint64_t last) const {
    const std::uint64_t at = byte_of(first, type_.width());
    return {source_.base + at, ((last + 1) * type_.width() + 7) / 8 - at};
  }
  [[nodiscard]] Bytes scale_bytes(std::uint64_t first, std::uint64_t last) const {
    if (!type_.is_mx()) return {};
    return {source_.scales + first / type_.block, last / type_.block - first / type_.block + 1};
  }

  // Rows without a gap between them that elements first … last belong to.
  [[nodiscard]] TileRows rows_between(std::uint64_t first, std::uint64_t last) const {
    first = std::max(first, source_.first);
    last = std::min(last, last_);
    return {static_cast<std::uint32_t>((first - source_.first) / mlen_),
            static_cast<std::uint32_t>((last - source_.first) / mlen_ + 1)};
  }

  [[nodiscard]] TileRows rows_of_elements(Bytes bytes) const {
    const auto written = stamps_.written(bytes.at, bytes.count, since_);
    if (written.empty()) return {};
    return rows_between((written.begin - source_.base) * 8 / type_.width(),
                        ((written.end - source_.base) * 8 - 1) / type_.width());
  }

  [[nodiscard]] TileRows rows_of_scales(Bytes bytes) const {
    if (bytes.count == 0) return {};
    const auto written = stamps_.written(bytes.at, bytes.count, since_);
    if (written.empty()) return {};
    return rows_between((written.begin - source_.scales) * type_.block,
                        (written.end - source_.scales) * type_.block - 1);
  }

  [[nodiscard]] TileRows row_by_row() const {
    TileRows stale;
    for (std::uint32_t row = 0; row < mlen_; ++row) {
      const std::uint64_t first = source_.first + row * source_.stride;
      const Bytes elements = element_bytes(first, first + mlen_ - 1);
      const Bytes scales = scale_bytes(first, first + mlen_ - 1);
      if (!stamps_.written(elements.at, elements.count, since_).empty() ||
          (scales.count != 0 && !stamps_.written(scales.at, scales.count, since_).empty())) {
        stale = joined(stale, {row, row + 1});
      }
    }
    return stale;
  }

  const WriteStamps& stamps_;
  const TileSource& source_;
  std::uint64_t since_;
  DataType type_;
  std::uint32_t mlen_;
  std::uint64_t last_;  // element of the tile
};

template <class Element>
void patch_columns(const CachedTile& tile, TileRows rows, std::uint32_t mlen) {
  const auto* from = reinterpret_cast<const Element*>(tile.rows);
  auto* to = reinterpret_cast<Element*>(tile.columns);
  for (std::uint32_t k = 0; k < mlen; ++k) {
    for (std::uint32_t row = rows.begin; row < rows.end; ++row) {
      to[std::size_t{k} * mlen + row] = from[std::size_t{row} * mlen + k];
    }
  }
}

}  // namespace

bool TileCache::attach(Machine& machine, const PreparedProgram& program) {
  if (bytes_ == 0 || !machine.hbm.stamp_writes() || !machine.mram.stamp_writes()) return false;
  const Kind kind{machine.hbm.stamps()->identity(), program.settings.hbm_m_weight_type,
                  program.settings.hbm_m_kv_type, program.matrix_format, program.mlen};
  stamps_ = machine.hbm.stamps();
  kernels_ = program.matrix;
  if (kind != kind_) lay_out(kind);
  return room_ != 0;
}

void TileCache::lay_out(const Kind& kind) {
  tiles_.clear();
  buckets_.clear();
  occupied_.clear();
  taken_ = hand_ = room_ = streaming_ = 0;
  kind_ = kind;
  tile_bytes_ = std::size_t{kind.mlen} * kind.mlen * storage_bytes(kind.format);
  auto storage = SparseMemory::reserve(bytes_ / tile_bytes_ * tile_bytes_, std::size_t{1} << 20);
  if (!storage) return;
  storage_ = std::move(*storage);
  room_ = bytes_ / tile_bytes_;
  tiles_.reserve(room_);
  // Most tiles of a model that streams by are not here: an empty bucket says so.
  constexpr std::size_t kBucketsPerTile = 8;
  buckets_.assign(std::bit_ceil(room_) * kBucketsPerTile, nullptr);
  occupied_.assign((buckets_.size() + kWordBits - 1) / kWordBits, 0);
}

std::uint8_t* TileCache::take_room() {
  if (taken_ == room_) return nullptr;
  return storage_.writable(taken_++ * tile_bytes_, tile_bytes_);
}

inline std::size_t TileCache::bucket(const TileSource& source) const {
  // Odd constants whose bits are well mixed (the golden ratio and its like); tiles of a tensor
  // differ in `first` or `base` by multiples of a power of two, so that the upper bits are taken.
  std::uint64_t hash = (source.base + (source.key_value ? 1 : 0)) * 0x9E3779B97F4A7C15;
  hash = (hash ^ (hash >> 29) ^ source.first) * 0xBF58476D1CE4E5B9;
  hash = (hash ^ (hash >> 32) ^ source.scales ^ source.stride << 40) * 0x94D049BB133111EB;
  return (hash >> 32) & (buckets_.size() - 1);
}

CachedTile* TileCache::find(const TileSource& source) {
  const std::size_t at = bucket(source);
  if ((occupied_[at / kWordBits] >> at % kWordBits & 1) == 0) return nullptr;
  for (CachedTile* tile = buckets_[at]; tile != nullptr; tile = tile->next_in_bucket) {
    if (tile->source == source) {
      tile->used = true;
      return tile;
    }
  }
  return nullptr;
}

CachedTile* TileCache::take_in(const TileSource& source, bool streams) {
  CachedTile* tile = take_tile(streams);
  if (tile == nullptr) return nullptr;
  tile->source = source;
  tile->streams = streams;
  streaming_ += streams ? 1 : 0;
  tile->columns_hold = false;
  tile->finite = true;  // so far: it has no rows
  const std::size_t at = bucket(source);
  tile->next_in_bucket = std::exchange(buckets_[at], tile);
  occupied_[at / kWordBits] |= std::uint64_t{1} << at % kWordBits;
  return tile;
}

// A tile of its own or one that is no source's any more.
CachedTile* TileCache::take_tile(bool streams) {
  if (std::uint8_t* rows = take_room()) {
    CachedTile& tile = tiles_.emplace_back();
    tile.rows = rows;
    return &tile;
  }
  if (streams) return nullptr;
  CachedTile* tile = nullptr;
  if (streaming_ != 0) {
    tile = streaming_victim();
    --streaming_;
  } else {
    if (++refused_ % kRefusals != 0) return nullptr;
    tile = victim();
  }
  unlink(*tile);
  return tile;
}

// The first from the hand on that was not used since the hand last passed.
CachedTile* TileCache::victim() {
  while (true) {
    CachedTile& tile = tiles_[hand_];
    hand_ = hand_ + 1 == tiles_.size() ? 0 : hand_ + 1;
    if (!std::exchange(tile.used, false)) return &tile;
  }
}

// There is one.
CachedTile* TileCache::streaming_victim() {
  while (true) {
    CachedTile& tile = tiles_[hand_];
    hand_ = hand_ + 1 == tiles_.size() ? 0 : hand_ + 1;
    if (tile.streams) return &tile;
  }
}

void TileCache::unlink(const CachedTile& tile) {
  const std::size_t at = bucket(tile.source);
  CachedTile** link = &buckets_[at];
  while (*link != &tile) link = &(*link)->next_in_bucket;
  *link = tile.next_in_bucket;
  if (buckets_[at] == nullptr) occupied_[at / kWordBits] &= ~(std::uint64_t{1} << at % kWordBits);
}

TileRows TileCache::stale_rows(const CachedTile& tile) const {
  if (tile.current_at == stamps_->now()) return {};
  const DataType type = tile.source.key_value ? kind_.kv_type : kind_.weight_type;
  return StaleRows(*stamps_, tile, type, kind_.mlen).find();
}

void TileCache::refreshed(CachedTile& tile, TileRows rows) {
  tile.current_at = stamps_->now();
  if (rows.empty()) return;
  tile.version = ++versions_;
  // A tile that was not finite may have become so by these rows.
  tile.finite = all_finite(tile, tile.finite ? rows : TileRows{0, kind_.mlen});
  if (!tile.columns_hold) return;
  if (rows.end - rows.begin > kPatchedRows) {
    tile.columns_hold = false;
  } else if (storage_bytes(kind_.format) == 2) {
    patch_columns<std::uint16_t>(tile, rows, kind_.mlen);
  } else {
    patch_columns<std::uint32_t>(tile, rows, kind_.mlen);
  }
}

// Exponents of all ones mark infinities and NaNs; formats other than these two count as not finite.
bool TileCache::all_finite(const CachedTile& tile, TileRows rows) const {
  const bool bf16 = kind_.format == kBf16;
  if (!bf16 && kind_.format != kFp32) return false;
  // Adding the exponent's lowest bit carries into the sign of each element that has one.
  const std::uint64_t exponent = bf16 ? 0x7F807F807F807F80 : 0x7F8000007F800000;
  const std::uint64_t lowest = bf16 ? 0x0080008000800080 : 0x0080000000800000;
  const std::size_t row_bytes = tile_bytes_ / kind_.mlen;
  const std::uint8_t* at = tile.rows + rows.begin * row_bytes;
  const std::uint8_t* const end = tile.rows + rows.end * row_bytes;
  std::uint64_t carries = 0;
  const auto look_at = [&](std::size_t bytes) {
    std::uint64_t elements = 0;
    std::memcpy(&elements, at, bytes);
    carries |= (elements & exponent) + lowest;
    at += bytes;
  };
  while (end - at >= 8) look_at(8);
  if (at != end) look_at(static_cast<std::size_t>(end - at));
  return (carries & (exponent + lowest)) == 0;
}

const std::uint8_t* TileCache::columns(CachedTile& tile) {
  if (tile.columns_hold) return tile.columns;
  if (tile.columns == nullptr) tile.columns = take_room();
  if (tile.columns == nullptr) return nullptr;
  kernels_->transpose(tile.rows, tile.columns, kind_.mlen);
  tile.columns_hold = true;
  return tile.columns;
}

}  // namespace plena
