// Runs a request stream on a memory by itself and collects the figures a report shows.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plena/dram/controller.h"
#include "plena/dram/stream_case.h"

namespace plena::dram {

/// When one request was offered, accepted and finished, in ticks.
struct RequestTimes {
  Tick offered = 0;
  Tick accepted = 0;
  Tick finished = 0;
};

struct StreamResult {
  std::uint64_t requests = 0;
  Tick first_accepted = 0;
  Tick last_finished = 0;
  double tck_ps = 0;
  std::uint32_t ticks_per_ck = 1;
  std::uint32_t channels = 1;
  double peak_gbps = 0;
  ChannelStatistics statistics;
  LatencyHistogram unit_latency;  // last finish - first acceptance in a unit; unit > 1 only
  LatencyHistogram sojourn;       // finish - offer; with a schedule only

  [[nodiscard]] double in_ck(double ticks) const { return ticks / ticks_per_ck; }
  /// From the first acceptance to the last finish.
  [[nodiscard]] double total_ck() const {
    return in_ck(static_cast<double>(last_finished - first_accepted));
  }
  /// 10⁹ bytes a second.
  [[nodiscard]] double gbps() const {
    return 32.0 * static_cast<double>(requests) / (total_ck() * tck_ps / 1000.0);
  }
  /// Requests in the queue, a channel, averaged over time.
  [[nodiscard]] double mean_queue(const DirectionStatistics& direction) const {
    return static_cast<double>(direction.queued_ticks) /
           (static_cast<double>(last_finished) * channels);
  }
};

struct StreamRunOptions {
  std::vector<RequestTimes>* times = nullptr;  // receives one entry a request
  CommandLog* log = nullptr;                   // receives every command
  const std::atomic<bool>* interrupted = nullptr;
};

/// Fails when the settings make no sense, the requests differ from the case's checksum, or the run
/// was interrupted.
Result<StreamResult> run_stream(const StreamCase& stream, const Policy& policy,
                                const StreamRunOptions& options = {});

/// The policy of that name, `reference` with the scheduler the case asks for. Names: reference,
/// open.
Result<Policy> stream_policy(const StreamCase& stream, std::string_view name);

/// How far a result is from what somebody measured, in percent of that.
struct StreamComparison {
  double total_percent = 0;
  std::optional<double> mean_read_percent;  // none where one of the two has no reads
  bool passed = true;
};

/// `tolerance` in percent. With both_sides (policy `reference`) total cycles and mean read latency
/// must be within it; without, the total may be shorter by any amount, and the latency is only
/// reported, since another policy is meant to be faster.
StreamComparison compare(const StreamResult& result, const StreamExpectation& expected,
                         bool both_sides, double tolerance);

}  // namespace plena::dram
