#include "plena/dram/stream_run.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>

namespace plena::dram {
namespace {

// The source of the reference measurements: once a CK it hands requests over in order while the
// offered cycle has come, fewer than `outstanding` are unfinished, and the queue takes them.
class Source {
 public:
  Source(const StreamCase& stream, Controller& memory, std::vector<RequestTimes>* times)
      : stream_(stream),
        memory_(memory),
        requests_(stream),
        per_ck_(memory.ticks_per_ck()),
        times_(times) {}

  Status run(const std::atomic<bool>* interrupted) {
    for (std::uint64_t k = 0; k < stream_.requests && now_ != kNever; ++k) {
      hand_over(k);
      if (k % kCollectEvery != 0) continue;
      collect();
      if (interrupted != nullptr && interrupted->load(std::memory_order_relaxed))
        return fail(ErrorCode::Interrupted, "interrupted in case '{}'", stream_.id);
    }
    memory_.finish_all();
    collect();
    if (now_ != kNever && memory_.unfinished() == 0) return {};
    return fail(ErrorCode::Trap, "case '{}': {} requests in the memory never finish", stream_.id,
                memory_.unfinished());
  }

  [[nodiscard]] Tick first_accepted() const { return first_accepted_; }
  [[nodiscard]] Tick last_finished() const { return last_finished_; }

 private:
  // Completions are kept until then so that they do not pile up for long streams.
  static constexpr std::uint64_t kCollectEvery = 4096;

  void hand_over(std::uint64_t k) {
    const Request request = requests_.next();
    const Tick offered = static_cast<Tick>(requests_.offered_ck(k)) * per_ck_;
    now_ = std::max(now_, offered);
    if (stream_.outstanding) wait_for_place();
    if (now_ == kNever) return;
    // Only completions can follow while the request waits for its queue, so it still has a place.
    now_ = memory_.submit(request, now_);
    if (k == 0) first_accepted_ = now_;
    ++outstanding_;
    if (times_ != nullptr) (*times_)[k] = {.offered = offered, .accepted = now_};
  }

  void wait_for_place() {
    for (;;) {
      while (!finishing_.empty() && finishing_.top() <= now_) {
        finishing_.pop();
        --outstanding_;
      }
      if (outstanding_ < *stream_.outstanding) return;
      memory_.advance_to(now_);
      collect();
      Tick next = memory_.next_event();
      if (!finishing_.empty()) next = std::min(next, finishing_.top());
      if (next == kNever) {
        now_ = kNever;
        return;
      }
      now_ = std::max(now_, (next + per_ck_ - 1) / per_ck_ * per_ck_);
      memory_.advance_to(now_);
      collect();
    }
  }

  void collect() {
    memory_.take_completions([&](const Completion& completion) {
      last_finished_ = std::max(last_finished_, completion.finished);
      if (stream_.outstanding) finishing_.push(completion.finished);
      if (times_ != nullptr) (*times_)[completion.id].finished = completion.finished;
    });
  }

  const StreamCase& stream_;
  Controller& memory_;
  StreamRequests requests_;
  Tick per_ck_;
  std::vector<RequestTimes>* times_;
  Tick now_ = 0;
  Tick first_accepted_ = 0;
  Tick last_finished_ = 0;
  std::uint64_t outstanding_ = 0;
  std::priority_queue<Tick, std::vector<Tick>, std::greater<>> finishing_;
};

void add_unit_latencies(const std::vector<RequestTimes>& times, std::uint32_t unit,
                        LatencyHistogram& latencies) {
  for (std::size_t first = 0; first + unit <= times.size(); first += unit) {
    Tick finished = 0;
    for (std::size_t k = first; k < first + unit; ++k)
      finished = std::max(finished, times[k].finished);
    latencies.add(finished - times[first].accepted);
  }
}

}  // namespace

Result<StreamResult> run_stream(const StreamCase& stream, const Policy& policy,
                                const StreamRunOptions& options) {
  if (stream.checksum && *stream.checksum != StreamRequests::checksum(stream)) {
    return fail(ErrorCode::Format,
                "case '{}': the requests do not have the checksum the case gives", stream.id);
  }
  DramSettings settings = stream.memory;
  settings.policy = policy;
  auto memory = Controller::make(settings);
  if (!memory) return forward_error(memory);
  memory->set_log(options.log);

  const bool scheduled = !stream.offer.as_soon_as_possible;
  std::vector<RequestTimes> own_times;
  std::vector<RequestTimes>* times = options.times;
  if (times == nullptr && (scheduled || stream.unit > 1)) times = &own_times;
  if (times != nullptr) times->assign(stream.requests, {});

  Source source(stream, *memory, times);
  if (auto ran = source.run(options.interrupted); !ran)
    return tl::unexpected<Error>(std::move(ran).error());

  StreamResult result{.requests = stream.requests,
                      .first_accepted = source.first_accepted(),
                      .last_finished = source.last_finished(),
                      .tck_ps = static_cast<double>(settings.preset.tck_ps),
                      .ticks_per_ck = static_cast<std::uint32_t>(memory->ticks_per_ck()),
                      .channels = settings.channels,
                      .peak_gbps = memory->peak_gbps(),
                      .statistics = memory->statistics()};
  if (stream.unit > 1) add_unit_latencies(*times, stream.unit, result.unit_latency);
  if (scheduled)
    for (const RequestTimes& one : *times) result.sojourn.add(one.finished - one.offered);
  return result;
}

Result<Policy> stream_policy(const StreamCase& stream, std::string_view name) {
  if (name == "open") return kOpenPolicy;
  if (name == "reference")
    return stream.row_hit_scheduler ? kReferenceRowHitPolicy : kReferencePolicy;
  return fail_with_hint(ErrorCode::Usage, fmt::format("unknown policy '{}'", name),
                        "known policies: reference, open");
}

StreamComparison compare(const StreamResult& result, const StreamExpectation& expected,
                         bool both_sides, double tolerance) {
  const auto percent = [](double ours, double theirs) { return (ours / theirs - 1) * 100; };
  StreamComparison comparison{.total_percent = percent(result.total_ck(), expected.total_ck)};
  const LatencyHistogram& reads = result.statistics.reads().latency;
  if (expected.mean_read_ck && *expected.mean_read_ck > 0 && reads.count() != 0)
    comparison.mean_read_percent = percent(result.in_ck(reads.mean()), *expected.mean_read_ck);
  comparison.passed = comparison.total_percent <= tolerance;
  if (both_sides) {
    comparison.passed = std::abs(comparison.total_percent) <= tolerance &&
                        std::abs(comparison.mean_read_percent.value_or(0)) <= tolerance;
  }
  return comparison;
}

}  // namespace plena::dram
