// How well a model on the machine predicts a text: perplexity over sliding windows.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "plena/base/error.h"
#include "plena/runtime/session.h"

namespace plena {

/// Where a document is cut: window k covers its tokens k*stride … k*stride + length-1 and runs from
/// position 0. The first scores every token but its first, a later one those no window before it
/// has scored; the longer the overlap, the more each scored token has before it.
struct SlidingWindow {
  std::uint32_t length = 0;  // up to the model's context; 0: the whole context
  std::uint32_t stride = 0;  // up to the length; 0: half of it
};

struct PerplexityReport {
  std::uint64_t documents = 0;
  std::uint64_t steps = 0;             // runs of the machine
  std::uint64_t scored = 0;            // tokens with a probability
  std::uint64_t top1_hits = 0;         // of those, how many were the likeliest
  double negative_log_likelihood = 0;  // sum over the scored tokens, natural logarithm
  double seconds = 0;                  // host time

  /// exp of the mean negative log-likelihood; 1 when nothing was scored.
  [[nodiscard]] double perplexity() const;
  [[nodiscard]] double top1_share() const;
  [[nodiscard]] double tokens_per_second() const;
};

/// Steps a run over documents of these lengths takes; for progress.
std::uint64_t count_steps(std::span<const std::vector<std::uint32_t>> documents,
                          SlidingWindow window, std::uint32_t context);

/// Scores documents, each on its own and with the BOS it starts with. `step` is called after every
/// run of the machine. Errors: a window that does not fit the context, a stride longer than the
/// window, an id outside the vocabulary, a trap, an interrupt.
Result<PerplexityReport> score(Session& session,
                               std::span<const std::vector<std::uint32_t>> documents,
                               SlidingWindow window = {}, const std::function<void()>& step = {});

}  // namespace plena
