// The memory's own unit of time.
#pragma once

#include <cstdint>
#include <limits>

namespace plena::dram {

/// A clock edge the memory can act on, counted from 0: one a tCK in HBM2, two a tCK in HBM3.
/// A tick is named by its end: what is handed over at tick a can act at tick a + 1.
using Tick = std::int64_t;

/// Later than anything that happens.
inline constexpr Tick kNever = std::numeric_limits<Tick>::max() / 2;

/// A tick as a channel keeps it: counted from an origin that follows the present, so that a
/// vector holds many and a state does not depend on when it came about.
using ShortTick = std::int32_t;

inline constexpr ShortTick kShortNever = std::numeric_limits<ShortTick>::max();
/// Further back than any gap reaches.
inline constexpr ShortTick kShortLongAgo = -(1 << 20);
/// The origin moves when the present is further from it than this.
inline constexpr ShortTick kOriginReach = 1 << 29;

}  // namespace plena::dram
