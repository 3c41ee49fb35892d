// The options that say how this host is to compute, never what: results are the same with any.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plena/cli/context.h"
#include "plena/sim/tile_cache.h"
#include "plena/sim/workers.h"

namespace plena {

struct EngineOptions {
  std::uint64_t tile_cache_mib = TileCache::kDefaultBytes >> 20;
  unsigned threads = 0;  // 0: one a processor
  bool fuse = true;

  [[nodiscard]] std::size_t tile_cache_bytes() const { return tile_cache_mib << 20; }
};

void add_engine_options(CLI::App& command, EngineOptions& options);

}  // namespace plena
