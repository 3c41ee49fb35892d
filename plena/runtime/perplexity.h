// How well a model on the machine predicts a text: perplexity over sliding windows.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "plena/base/error.h"
#include "plena/runtime/generation.h"

namespace plena {

/// Where a document is cut: window k covers its tokens k*stride … k*stride + length-1 and runs from
/// position 0. The first scores every token but its first, a later one those no window before it
/// has scored; the longer the overlap, the more each scored token has before it.
struct SlidingWindow {
  std::uint32_t length = 0;  // up to the model's context; 0: the whole context
  std::uint32_t stride = 0;  // up to the length; 0: half of it
};

struct PerplexityReport : FeedReport {
  std::uint64_t documents = 0;
};

/// Tokens that a run over these documents feeds to the machine; for progress.
std::uint64_t count_tokens(std::span<const std::vector<std::uint32_t>> documents,
                           SlidingWindow window, std::uint32_t context);

/// Scores documents, each on its own and with the BOS it starts with. A window is a prompt where
/// the image has all logits of a block, else one token after the other. `fed` is called after every
/// run of the machine, with the tokens it took. Errors: a window that does not fit the context, a
/// stride longer than the window, an id outside the vocabulary, a trap, an interrupt.
Result<PerplexityReport> score(Session& session,
                               std::span<const std::vector<std::uint32_t>> documents,
                               SlidingWindow window = {},
                               const std::function<void(std::uint64_t tokens)>& fed = {});

}  // namespace plena
