// Tiles of Matrix SRAM as they were decoded from HBM, kept as long as nothing writes the bytes they
// come from. A prefetch that finds its tile here decodes only the rows that changed; the transposed
// copy that M_T* work on is kept beside the tile.
//
// Exact by construction: a tile is found by all that its values depend on but the bytes of HBM, and
// the time of the last write of those bytes is kept by the memory itself (WriteStamps), whoever
// writes. Nothing is ever assumed to be read-only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "plena/machine/machine.h"
#include "plena/machine/write_stamps.h"
#include "plena/numerics/matrix_kernels.h"
#include "plena/sim/settled_copies.h"

namespace plena {

class PreparedProgram;

/// Where H_PREFETCH_M takes a tile from. Elements count from the base.
struct TileSource {
  std::uint64_t base = 0;    // byte address of element 0
  std::uint64_t scales = 0;  // byte address of scale 0
  std::uint64_t first = 0;   // element of row 0
  std::uint64_t stride = 0;  // elements between rows
  bool key_value = false;    // of HBM_M_KV_TYPE, else of HBM_M_WEIGHT_TYPE

  friend bool operator==(const TileSource&, const TileSource&) = default;
};

/// Rows begin … end - 1 of a tile.
struct TileRows {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  [[nodiscard]] bool empty() const { return begin == end; }
};

struct CachedTile {
  TileSource source;
  std::uint8_t* rows = nullptr;     // [MLEN][MLEN] of the Matrix SRAM format
  std::uint8_t* columns = nullptr;  // the same transposed; null: no room was taken for it
  bool columns_hold = false;        // `columns` is the transpose of `rows`
  bool finite = false;              // no infinity or NaN in it; false may be wrong
  bool used = false;                // since the search for a victim last passed by
  bool streams = false;             // its products can be taken from HBM nearly as well
  std::uint32_t shown = 0;          // places of Matrix SRAM that show it (shown_tiles.h)
  std::uint64_t current_at = 0;     // time of HBM's stamps when `rows` was last right
  std::uint64_t version = 0;        // of what `rows` holds: no other contents have the same
  CachedTile* next_in_bucket = nullptr;
};

class TileCache {
 public:
  /// What a run keeps unless told otherwise: some hundred tiles of MLEN 64, which a core's second
  /// level cache and a part of the third hold.
  static constexpr std::size_t kDefaultBytes = std::size_t{16} << 20;

  /// Holds at most `bytes` bytes of tiles; less than one tile is a cache that keeps nothing.
  explicit TileCache(std::size_t bytes = kDefaultBytes) : bytes_(bytes) {}

  /// Makes the cache one of this machine's HBM and this program's types. What it holds of another
  /// memory or other types is forgotten. False where nothing can be kept.
  bool attach(Machine& machine, const PreparedProgram& program);

  /// The tile of a source, right or not, or null.
  CachedTile* find(const TileSource& source);

  /// A tile to fill for a source that was not found, or null. It may have been another source's,
  /// whose bytes it still holds. A tile that `streams` has to do without where there is no room
  /// left, and makes room for one that does not.
  CachedTile* admit(const TileSource& source, bool streams = false) {
    return streams && taken_ == room_ ? nullptr : take_in(source, streams);
  }

  /// The rows of a tile that may have changed in HBM since it was right.
  [[nodiscard]] TileRows stale_rows(const CachedTile& tile) const;

  /// `rows` were decoded again, just now.
  void refreshed(CachedTile& tile, TileRows rows);

  /// The transposed tile [MLEN][MLEN], or null where there is no room for it.
  const std::uint8_t* columns(CachedTile& tile);

  /// What Matrix SRAM was given copies of.
  [[nodiscard]] SettledCopies& settled() { return settled_; }

  [[nodiscard]] std::size_t tile_count() const { return tiles_.size(); }

 private:
  // What the tiles were decoded with.
  struct Kind {
    std::uint64_t hbm = 0;  // WriteStamps::identity()
    DataType weight_type, kv_type;
    ElementType format;
    std::uint32_t mlen = 0;

    friend bool operator==(const Kind&, const Kind&) = default;
  };

  void lay_out(const Kind& kind);
  [[nodiscard]] bool all_finite(const CachedTile& tile, TileRows rows) const;
  std::uint8_t* take_room();
  CachedTile* victim();
  CachedTile* streaming_victim();
  CachedTile* take_in(const TileSource& source, bool streams);
  CachedTile* take_tile(bool streams);
  [[nodiscard]] std::size_t bucket(const TileSource& source) const;
  void unlink(const CachedTile& tile);

  std::size_t bytes_;
  Kind kind_;
  const WriteStamps* stamps_ = nullptr;
  const MatrixKernels* kernels_ = nullptr;
  std::size_t tile_bytes_ = 0;
  std::size_t room_ = 0;   // tiles and transposed copies that fit
  std::size_t taken_ = 0;  // of them
  SparseMemory storage_;
  std::vector<CachedTile> tiles_;     // never moves: reserved once
  std::vector<CachedTile*> buckets_;  // a power of two of them
  // A bit a bucket, set where it has a tile: small enough to stay near, where buckets do not while
  // a model streams by.
  std::vector<std::uint64_t> occupied_;
  std::size_t hand_ = 0;  // of the clock that looks for a victim
  std::uint32_t refused_ = 0;
  std::size_t streaming_ = 0;  // tiles that stream
  std::uint64_t versions_ = 0;
  SettledCopies settled_;
};

}  // namespace plena
