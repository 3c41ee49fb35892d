// Picks the next token from logits: the likeliest, or at random by temperature and nucleus.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plena/base/error.h"

namespace plena {

/// xorshift64* (Vigna 2016), its state mixed from the seed by one step of splitmix64: the same
/// numbers everywhere.
class Xorshift {
 public:
  explicit Xorshift(std::uint64_t seed);

  std::uint64_t next();

  /// Uniform in [0, 1), a multiple of 2^-53.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

struct SamplingOptions {
  float temperature = 1.0F;  // 0: always the likeliest token
  float top_p = 0.9F;        // share of probability the likeliest tokens must reach; 1: all tokens
  std::uint64_t seed = 0;
};

class Sampler {
 public:
  explicit Sampler(const SamplingOptions& options) : options_(options), random_(options.seed) {}

  /// The id of the next token. Of equal logits the first counts as likelier. Logits with a NaN, or
  /// whose largest is infinite, are an error: there is no sensible choice.
  Result<std::uint32_t> pick(std::span<const float> logits);

 private:
  std::uint32_t pick_at_random(std::span<const float> logits, float largest);

  SamplingOptions options_;
  Xorshift random_;
  struct Candidate {
    std::uint32_t id;
    double weight;  // probability, up to a factor
  };
  std::vector<Candidate> candidates_;  // scratch
};

}  // namespace plena
