// The loop around a session: feed a prompt, sample what follows, or feed given tokens and judge
// the model by them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "plena/base/error.h"
#include "plena/runtime/sampler.h"
#include "plena/runtime/session.h"

namespace plena {

/// What a caller wants to see as it happens; either may be empty.
struct GenerationHooks {
  /// A token joined the text after `previous` (kNoToken before the first): of the prompt, fed or
  /// sampled.
  std::function<void(std::uint32_t previous, std::uint32_t id)> token;
  /// The machine was fed `id` and answered with logits [vocab]; none where a block of the prompt
  /// was fed and later ids followed in it.
  std::function<void(std::uint32_t id, std::span<const float> logits)> step;
  bool all_logits = false;  // the prompt is fed id by id, so that all of it has logits
};

enum class GenerationEnd : std::uint8_t { EndToken, TokenLimit, ContextEnd };
std::string_view generation_end_name(GenerationEnd end);  // "end_token", …

struct GenerationLimits {
  std::uint32_t max_tokens = 1;     // at least 1
  std::vector<std::uint32_t> ends;  // tokens that end a text
};

struct Generation {
  std::vector<std::uint32_t> ids;      // fed to the machine, in order
  std::size_t prompt_runs = 0;         // of the program, until the whole prompt was fed
  std::vector<std::uint32_t> sampled;  // the last of them was not fed any more
  GenerationEnd end = GenerationEnd::TokenLimit;
  double seconds = 0;  // host time of all steps

  /// Tokens fed a second of host time.
  [[nodiscard]] double tokens_per_second() const;
};

/// Feeds `prompt` (at least one token) and then samples tokens until one of the limits is reached
/// or the context is full. A prompt longer than the context is an error.
Result<Generation> generate(Session& session, Sampler& sampler,
                            std::span<const std::uint32_t> prompt, const GenerationLimits& limits,
                            const GenerationHooks& hooks = {});

/// The same for several prompts, as many side by side as the session has sequences; the sampler of
/// each is its own. A prompt is fed when it gets a place, alone; then all places step at once, and
/// a text that has ended leaves its place to the next prompt. `token(prompt, previous, id)` hears
/// of tokens as they join.
struct BatchGeneration {
  std::vector<Generation> sequences;  // one a prompt
  std::size_t prompt_runs = 0;        // of the program, before the first common step
  std::uint64_t common_tokens = 0;    // that common steps have fed
  double seconds = 0;                 // host time of all steps
};
Result<BatchGeneration> generate_batch(
    Session& session, std::span<Sampler> samplers,
    std::span<const std::vector<std::uint32_t>> prompts, const GenerationLimits& limits,
    const std::function<void(std::size_t prompt, std::uint32_t previous, std::uint32_t id)>& token =
        {});

/// What feeding known tokens came to, and how well the machine foretold them.
struct FeedReport {
  std::uint64_t steps = 0;             // tokens the machine was fed
  std::uint64_t scored = 0;            // ids that had logits before them
  std::uint64_t top1_hits = 0;         // of those, how many were the likeliest
  double negative_log_likelihood = 0;  // sum over the scored ids, natural logarithm
  double seconds = 0;                  // host time

  /// `id` came where the machine had answered with `logits` [vocab].
  void score(std::span<const float> logits, std::uint32_t id);

  [[nodiscard]] double tokens_per_second() const;
  /// exp of the mean negative log-likelihood; 1 when nothing was scored.
  [[nodiscard]] double perplexity() const;
  /// Share of the scored ids that were the likeliest; 0 when nothing was scored.
  [[nodiscard]] double top1_share() const;
};

/// Teacher forcing: feeds `ids` from position 0, whatever the model would have said.
Result<FeedReport> feed(Session& session, std::span<const std::uint32_t> ids,
                        const GenerationHooks& hooks = {});

/// -ln of the softmax of `logits` at `id`, in f64.
double negative_log_likelihood(std::span<const float> logits, std::uint32_t id);

}  // namespace plena
