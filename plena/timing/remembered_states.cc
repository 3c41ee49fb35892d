#include "plena/timing/remembered_states.h"

#include <cstring>

namespace plena {

namespace {

constexpr std::size_t kNodeBytes = 64;  // of a hash table's entry

std::size_t bytes_of(const RememberedStates::Passage& passage) {
  return sizeof(passage) + passage.transfers.size() * sizeof(passage.transfers[0]) +
         passage.ends.size() * sizeof(passage.ends[0]);
}

// Two chains, so that multiplications overlap.
std::size_t hash_of(const void* words, std::size_t bytes) {
  constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15U;
  const auto* byte = static_cast<const unsigned char*>(words);
  std::uint64_t even = bytes;
  std::uint64_t odd = 0;
  const auto mix = [](std::uint64_t& hash, std::uint64_t word) {
    hash = (hash ^ word) * kFactor;
    hash ^= hash >> 32;
  };
  const auto word = [&](std::size_t at, std::size_t count) {
    std::uint64_t eight = 0;
    std::memcpy(&eight, byte + at, count);
    return eight;
  };
  std::size_t at = 0;
  for (; at + 16 <= bytes; at += 16) {
    mix(even, word(at, 8));
    mix(odd, word(at + 8, 8));
  }
  for (; at < bytes; at += 8) mix(even, word(at, std::min<std::size_t>(bytes - at, 8)));
  return (even ^ odd * 31) * kFactor;
}

}  // namespace

std::size_t RememberedStates::KeyHash::operator()(const Key& key) const {
  return hash_of(key.data(), key.size() * sizeof(key[0]));
}

std::size_t RememberedStates::WordsHash::operator()(const dram::StateWords& words) const {
  return hash_of(words.data(), words.size() * sizeof(words[0]));
}

std::pair<RememberedStates::State*, bool> RememberedStates::state(const dram::StateWords& words) {
  const auto [found, is_new] = states_.try_emplace(words);
  if (is_new) {
    found->second.number = ++met_;
    found->second.words = &found->first;
    bytes_ += words.size() * sizeof(words[0]) + sizeof(*found) + kNodeBytes;
  }
  return {&found->second, is_new};
}

RememberedStates::Step* RememberedStates::find_step(const Key& key) {
  const auto found = steps_.find(key);
  return found == steps_.end() ? nullptr : &found->second;
}

void RememberedStates::Step::write(const Key& key, const Passage& seen,
                                   std::span<const ChangedBank> changed) {
  key_words = static_cast<std::uint32_t>(key.size());
  transfers = static_cast<std::uint32_t>(seen.transfers.size());
  changed_banks = static_cast<std::uint32_t>(changed.size());
  until = seen.until;
  reach = seen.reach;
  const std::size_t key_bytes = key.size() * sizeof(key[0]);
  const std::size_t progress_bytes = seen.transfers.size() * sizeof(Progress);
  bytes = std::make_unique_for_overwrite<std::byte[]>(key_bytes + progress_bytes +
                                                      changed.size_bytes());
  std::byte* at = bytes.get();
  std::uninitialized_copy(key.begin(), key.end(), reinterpret_cast<std::int32_t*>(at));
  at += key_bytes;
  std::uninitialized_copy(seen.transfers.begin(), seen.transfers.end(),
                          reinterpret_cast<Progress*>(at));
  at += progress_bytes;
  std::uninitialized_copy(changed.begin(), changed.end(), reinterpret_cast<ChangedBank*>(at));
}

RememberedStates::Step* RememberedStates::add_step(const Key& key, Step step,
                                                   std::span<const ChangedBank> changed) {
  const auto [found, is_new] = steps_.try_emplace(key);
  if (!is_new) return &found->second;
  step.write(key, *step.passage, changed);
  bytes_ += 2 * key.size() * sizeof(key[0]) + sizeof(*found) + kNodeBytes + sizeof(Counts) +
            bytes_of(*step.passage) + step.transfers * sizeof(Progress) + changed.size_bytes();
  for (const auto& latencies : step.counts->latencies)
    bytes_ += latencies.size() * sizeof(latencies[0]);
  found->second = std::move(step);
  return &found->second;
}

const std::shared_ptr<const RememberedStates::Passage>* RememberedStates::find_passage(
    const Key& key) const {
  const auto found = passages_.find(key);
  return found == passages_.end() ? nullptr : &found->second;
}

void RememberedStates::add_passage(const Key& key, std::shared_ptr<const Passage> passage) {
  bytes_ += key.size() * sizeof(key[0]) + kNodeBytes;
  passages_.insert_or_assign(key, std::move(passage));
}

void RememberedStates::forget() {
  for (const auto& [key, step] : steps_) step.counts->add_to(forgotten_, step.times);
  steps_.clear();
  passages_.clear();
  states_.clear();
  bytes_ = 0;
}

void RememberedStates::add_to(dram::ChannelStatistics& statistics) const {
  statistics.merge(forgotten_);
  for (const auto& [key, step] : steps_) step.counts->add_to(statistics, step.times);
}

void RememberedStates::Counts::add_to(dram::ChannelStatistics& statistics,
                                      std::uint64_t times) const {
  if (times == 0) return;
  activity.add_to(statistics, times);
  for (std::size_t is_write = 0; is_write < latencies.size(); ++is_write) {
    for (const auto& [latency, bursts] : latencies[is_write])
      statistics.direction[is_write].latency.add(latency, bursts * times);
  }
}

}  // namespace plena
