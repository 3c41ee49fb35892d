#include "plena/runtime/sampler.h"

#include <algorithm>
#include <cmath>

namespace plena {

Xorshift::Xorshift(std::uint64_t seed) {
  std::uint64_t z = seed + 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  state_ = z ^ (z >> 31);
  if (state_ == 0) state_ = 1;  // the one state xorshift never leaves
}

std::uint64_t Xorshift::next() {
  state_ ^= state_ >> 12;
  state_ ^= state_ << 25;
  state_ ^= state_ >> 27;
  return state_ * 0x2545F4914F6CDD1D;
}

Result<std::uint32_t> Sampler::pick(std::span<const float> logits) {
  const auto likeliest = std::max_element(logits.begin(), logits.end());
  const bool has_nan = std::any_of(logits.begin(), logits.end(), [](float x) { return x != x; });
  if (likeliest == logits.end() || has_nan || !std::isfinite(*likeliest)) {
    return fail_with_hint(ErrorCode::Unsupported, "the logits are not finite numbers",
                          "the number formats of these settings overflow on this model");
  }
  if (options_.temperature == 0) return static_cast<std::uint32_t>(likeliest - logits.begin());
  return pick_at_random(logits, *likeliest);
}

std::uint32_t Sampler::pick_at_random(std::span<const float> logits, float largest) {
  double total = 0;
  candidates_.clear();
  for (std::uint32_t id = 0; id < logits.size(); ++id) {
    const double weight = std::exp((double{logits[id]} - largest) / options_.temperature);
    candidates_.push_back({id, weight});
    total += weight;
  }
  if (options_.top_p < 1) {
    std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
      return a.weight != b.weight ? a.weight > b.weight : a.id < b.id;
    });
    // The nucleus: the fewest likeliest tokens that reach the share.
    const double share = total * options_.top_p;
    total = 0;
    std::size_t kept = 0;
    while (kept < candidates_.size() && (kept == 0 || total < share)) {
      total += candidates_[kept++].weight;
    }
    candidates_.resize(kept);
  }
  double rest = random_.uniform() * total;
  for (const Candidate& candidate : candidates_) {
    rest -= candidate.weight;
    if (rest < 0) return candidate.id;
  }
  return candidates_.back().id;  // rounding left a sliver
}

}  // namespace plena
