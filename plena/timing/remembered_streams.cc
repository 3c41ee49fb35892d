#include "plena/timing/remembered_streams.h"

namespace plena {

namespace {

std::size_t words_of(const RememberedStreams::Outcome& outcome) {
  std::size_t bytes = sizeof(outcome) + 4 * outcome.memory.size();
  for (const auto& transfer : outcome.transfers) {
    bytes += sizeof(transfer);
    if (transfer.ends.use_count() == 1) bytes += 4 * transfer.ends->size();
  }
  for (const auto& latencies : outcome.latencies) bytes += 16 * latencies.size();
  return bytes / 4;
}

}  // namespace

// Two chains, so that multiplications overlap.
std::size_t RememberedStreams::Hash::operator()(const Key& key) const {
  constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15U;
  std::uint64_t even = key.size();
  std::uint64_t odd = 0;
  const auto mix = [&](std::uint64_t& hash, std::uint64_t words) {
    hash = (hash ^ words) * kFactor;
    hash ^= hash >> 32;
  };
  const auto word = [&](std::size_t i) {
    return i < key.size() ? std::uint64_t{static_cast<std::uint32_t>(key[i])} : 0;
  };
  for (std::size_t i = 0; i < key.size(); i += 4) {
    mix(even, word(i) | word(i + 1) << 32);
    mix(odd, word(i + 2) | word(i + 3) << 32);
  }
  return (even ^ odd * 31) * kFactor;
}

std::pair<RememberedStreams::Run*, bool> RememberedStreams::at(const Key& key) {
  const auto [found, is_new] = known_.try_emplace(key);
  if (is_new) {
    found->second.number = ++met_;
    words_ += key.size() + sizeof(*found) / 4;
  }
  return {&found->second, is_new};
}

RememberedStreams::Run* RememberedStreams::find(const Key& key) {
  const auto found = known_.find(key);
  return found == known_.end() ? nullptr : &found->second;
}

void RememberedStreams::remember(Run& run, Outcome outcome) {
  words_ += words_of(outcome);
  run.outcome = std::make_unique<Outcome>(std::move(outcome));
}

void RememberedStreams::forget() {
  for (const auto& [key, run] : known_)
    if (run.outcome != nullptr) add_to(forgotten_, *run.outcome, run.outcome->times);
  known_.clear();
  words_ = 0;
}

void RememberedStreams::add_to(dram::ChannelStatistics& statistics) const {
  statistics.merge(forgotten_);
  for (const auto& [key, run] : known_)
    if (run.outcome != nullptr) add_to(statistics, *run.outcome, run.outcome->times);
}

void RememberedStreams::add_to(dram::ChannelStatistics& statistics, const Outcome& outcome,
                               std::uint64_t times) {
  if (times == 0) return;
  outcome.activity.add_to(statistics, times);
  for (std::size_t is_write = 0; is_write < outcome.latencies.size(); ++is_write) {
    for (const auto& [latency, bursts] : outcome.latencies[is_write])
      statistics.direction[is_write].latency.add(latency, bursts * times);
  }
}

}  // namespace plena
