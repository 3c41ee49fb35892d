// The choices a controller makes that no data sheet prescribes.
#pragma once

#include <cstdint>
#include <string_view>

#include "plena/base/error.h"

namespace plena::dram {

enum class RefreshMode : std::uint8_t { AllBank, PerBank, None };

std::string_view name(RefreshMode mode);  // "all-bank", "per-bank", "none"
Result<RefreshMode> find_refresh_mode(std::string_view name);

/// Which waiting hits keep their row from being closed for another request of the same queue.
enum class RowHold : std::uint8_t {
  None,   // those that are ready go first anyway; nothing else is kept
  Older,  // hits accepted no later than the other request
};

/// Which requests a pending refresh holds up.
enum class RefreshStop : std::uint8_t {
  Channel,       // all of the channel
  CoveredBanks,  // those for the banks that will be refreshed
};

/// When a channel that has both reads and writes waiting turns from the one kind to the other.
struct TurnRules {
  /// Writes are drained from when more than this share of the write queue is taken ...
  std::uint32_t drain_above_percent = 80;
  /// ... or more than this one while no read is left whose row is open ...
  std::uint32_t drain_between_hits_above_percent = 100;
  /// ... but after a drain only when this many reads have been served ...
  std::uint32_t reads_at_least = 0;
  /// ... until less than this share is left ...
  std::uint32_t drain_below_percent = 20;
  /// ... and, if set, no write is left whose row is open ...
  bool drain_hits = false;
  /// ... or this many have been drained; 0: no limit.
  std::uint32_t drain_at_most = 0;
  /// A pseudo-channel where nothing of the kind in turn waits serves the other kind meanwhile.
  bool split = false;

  friend bool operator==(const TurnRules&, const TurnRules&) = default;
};

struct Policy {
  RowHold row_hold = RowHold::Older;
  RefreshStop refresh_stop = RefreshStop::CoveredBanks;
  /// A refresh waits for the hits in turn that were accepted before it fell due, since their rows
  /// would have to be opened again after it.
  bool refresh_after_hits = false;
  TurnRules turns;

  friend bool operator==(const Policy&, const Policy&) = default;
};

/// The rules of the public reference controller, scheduler FRFCFS.
inline constexpr Policy kReferencePolicy = {.row_hold = RowHold::None,
                                            .refresh_stop = RefreshStop::Channel};
/// The same with its scheduler FRFCFS-RowHit.
inline constexpr Policy kReferenceRowHitPolicy = {.row_hold = RowHold::Older,
                                                  .refresh_stop = RefreshStop::Channel};
/// What a good controller does beyond them; the default. Drains begin before the write queue is
/// full, so that a source need not stop, take what hits open rows along, since turning the bus
/// costs as much as a dozen bursts, and end before the last conflicts trickle out one by one. The
/// two limits keep a steady stream of the one kind from starving the other.
inline constexpr Policy kOpenPolicy = {.refresh_after_hits = true,
                                       .turns = {.drain_above_percent = 97,
                                                 .drain_between_hits_above_percent = 75,
                                                 .reads_at_least = 16,
                                                 .drain_below_percent = 60,
                                                 .drain_hits = true,
                                                 .drain_at_most = 128,
                                                 .split = true}};

}  // namespace plena::dram
