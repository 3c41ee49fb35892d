#include "plena/timing/remembered_streams.h"

namespace plena {

namespace {

constexpr std::size_t kMostWords = std::size_t{1} << 24;  // 64 MiB

std::size_t words_of(const RememberedStreams::Key& key, const RememberedStreams::Outcome& outcome) {
  std::size_t bytes = sizeof(outcome) + 4 * (key.size() + outcome.banks.size());
  for (const auto& transfer : outcome.transfers)
    bytes += sizeof(transfer) + 4 * transfer.ends.size();
  for (const auto& latencies : outcome.latencies) bytes += 16 * latencies.size();
  return bytes / 4;
}

void add_outcome(const RememberedStreams::Outcome& outcome, dram::ChannelStatistics& statistics) {
  if (outcome.times == 0) return;
  outcome.activity.add_to(statistics, outcome.times);
  for (std::size_t is_write = 0; is_write < outcome.latencies.size(); ++is_write) {
    for (const auto& [latency, bursts] : outcome.latencies[is_write])
      statistics.direction[is_write].latency.add(latency, bursts * outcome.times);
  }
}

}  // namespace

std::size_t RememberedStreams::Hash::operator()(const Key& key) const {
  std::uint64_t hash = key.size();
  const auto mix = [&](std::uint64_t words) {
    hash = (hash ^ words) * 0x9E3779B97F4A7C15U;
    hash ^= hash >> 32;
  };
  std::size_t i = 0;
  for (; i + 2 <= key.size(); i += 2) {
    mix(static_cast<std::uint32_t>(key[i]) | std::uint64_t{static_cast<std::uint32_t>(key[i + 1])}
                                                 << 32);
  }
  if (i < key.size()) mix(static_cast<std::uint32_t>(key[i]));
  return hash;
}

RememberedStreams::Outcome* RememberedStreams::find(const Key& key) {
  const auto found = known_.find(key);
  return found == known_.end() ? nullptr : &found->second;
}

RememberedStreams::Outcome* RememberedStreams::remember(const Key& key, Outcome outcome) {
  if (words_ > kMostWords) {
    for (const auto& [old_key, old] : known_) add_outcome(old, forgotten_);
    known_.clear();
    words_ = 0;
  }
  words_ += words_of(key, outcome);
  return &known_.insert_or_assign(key, std::move(outcome)).first->second;
}

void RememberedStreams::add_to(dram::ChannelStatistics& statistics) const {
  statistics.merge(forgotten_);
  for (const auto& [key, outcome] : known_) add_outcome(outcome, statistics);
}

}  // namespace plena
