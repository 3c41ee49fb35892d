#include "plena/runtime/generation.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "plena/model/tokenizer.h"

namespace plena {

namespace {

// Runs one position after the other, keeps count of them and of the host's time they take.
class Stepper {
 public:
  Stepper(Session& session, const GenerationHooks& hooks) : session_(session), hooks_(hooks) {}

  // Tells the caller that `id` joined the text.
  void show(std::uint32_t id) {
    if (hooks_.token) hooks_.token(shown_, id);
    shown_ = id;
  }

  Status step(std::uint32_t id) { return feed(std::span(&id, 1), false); }

  // Blocks of the prompt where the image has an entry for them, else one id after the other.
  Status feed_prompt(std::span<const std::uint32_t> ids) {
    while (!ids.empty()) {
      const std::size_t count = block_pays(ids.size()) ? block_of(ids.size()) : 1;
      for (const std::uint32_t id : ids.first(count)) show(id);
      if (auto fed = feed(ids.first(count), count > 1); !fed) return fed;
      ids = ids.subspan(count);
    }
    return {};
  }

  [[nodiscard]] std::size_t runs() const { return runs_; }                      // of the program
  [[nodiscard]] std::span<const float> logits() const { return logits_; }       // of the last step
  [[nodiscard]] const std::vector<std::uint32_t>& ids() const { return ids_; }  // stepped so far
  [[nodiscard]] double seconds() const { return seconds_; }

 private:
  [[nodiscard]] std::size_t block_of(std::size_t left) const {
    return std::min<std::size_t>(left, session_.block_tokens(position()));
  }
  // A block takes the machine as long however few tokens it holds: about as long as five eighths of
  // them one after the other. Without a causal mask there is nothing but the block.
  [[nodiscard]] bool block_pays(std::size_t left) const {
    if (hooks_.all_logits || left < 2) return false;
    if (session_.block_tokens(position()) == 0) return false;
    const Manifest& manifest = session_.manifest();
    return !manifest.causal || block_of(left) * 8 >= std::size_t{manifest.block->tokens} * 5;
  }
  [[nodiscard]] std::uint32_t position() const { return static_cast<std::uint32_t>(ids_.size()); }

  Status feed(std::span<const std::uint32_t> ids, bool block) {
    const auto begin = std::chrono::steady_clock::now();
    const auto logits =
        block ? session_.run_block(ids, position()) : session_.step(ids[0], position());
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (!logits) return tl::unexpected(logits.error());
    ++runs_;
    ids_.insert(ids_.end(), ids.begin(), ids.end());
    logits_ = *logits;
    for (std::size_t i = 0; hooks_.step && i < ids.size(); ++i) {
      hooks_.step(ids[i], i + 1 == ids.size() ? logits_ : std::span<const float>());
    }
    return {};
  }

  Session& session_;
  const GenerationHooks& hooks_;
  std::size_t runs_ = 0;
  std::uint32_t shown_ = kNoToken;
  std::vector<std::uint32_t> ids_;
  std::span<const float> logits_;
  double seconds_ = 0;
};

Status check_ids(std::span<const std::uint32_t> ids, const Manifest& manifest) {
  if (ids.empty()) return fail(ErrorCode::Usage, "there are no token ids to feed");
  if (ids.size() > manifest.context) {
    return fail(ErrorCode::Usage, "{} tokens do not fit the model's context of {}", ids.size(),
                manifest.context);
  }
  for (const std::uint32_t id : ids) {
    if (id < manifest.vocab) continue;
    return fail(ErrorCode::Usage, "token {} is not in the vocabulary of {}", id, manifest.vocab);
  }
  return {};
}

double rate(std::uint64_t steps, double seconds) {
  return seconds > 0 ? static_cast<double>(steps) / seconds : 0;
}

}  // namespace

std::string_view generation_end_name(GenerationEnd end) {
  switch (end) {
    case GenerationEnd::EndToken:
      return "end_token";
    case GenerationEnd::TokenLimit:
      return "token_limit";
    case GenerationEnd::ContextEnd:
      return "context_end";
  }
  return "";
}

double Generation::tokens_per_second() const {
  return rate(ids.size(), seconds);
}

Result<Generation> generate(Session& session, Sampler& sampler,
                            std::span<const std::uint32_t> prompt, const GenerationLimits& limits,
                            const GenerationHooks& hooks) {
  const Manifest& manifest = session.manifest();
  if (auto fits = check_ids(prompt, manifest); !fits) return tl::unexpected(fits.error());
  Stepper stepper(session, hooks);
  Generation generation;
  if (auto fed = stepper.feed_prompt(prompt); !fed) return tl::unexpected(fed.error());
  generation.prompt_runs = stepper.runs();
  while (generation.sampled.size() < limits.max_tokens) {
    const auto id = sampler.pick(stepper.logits());
    if (!id) return tl::unexpected(id.error());
    generation.sampled.push_back(*id);
    if (std::find(limits.ends.begin(), limits.ends.end(), *id) != limits.ends.end()) {
      generation.end = GenerationEnd::EndToken;
      break;
    }
    stepper.show(*id);
    if (generation.sampled.size() == limits.max_tokens) break;
    if (stepper.ids().size() == manifest.context) {
      generation.end = GenerationEnd::ContextEnd;
      break;
    }
    if (auto stepped = stepper.step(*id); !stepped) return tl::unexpected(stepped.error());
  }
  generation.seconds = stepper.seconds();
  generation.ids = stepper.ids();
  return generation;
}

namespace {

// One of several sequences: what it has said and where it stands.
struct Sequence {
  Generation generation;
  std::uint32_t previous = kNoToken;
  bool ended = false;

  [[nodiscard]] std::uint32_t position() const {
    return static_cast<std::uint32_t>(generation.ids.size());
  }
};

class BatchStepper {
 public:
  BatchStepper(Session& session, const GenerationLimits& limits,
               const std::function<void(std::size_t, std::uint32_t, std::uint32_t)>& token)
      : session_(session), limits_(limits), token_(token), sequences_(session.sequences()) {}

  // Feeds a sequence's prompt and samples its first token.
  Status start(std::size_t index, Sampler& sampler, std::span<const std::uint32_t> prompt) {
    session_.select_sequence(static_cast<std::uint32_t>(index));
    GenerationHooks hooks;
    hooks.token = [&](std::uint32_t /*previous*/, std::uint32_t id) { show(index, id); };
    Stepper stepper(session_, hooks);
    auto fed = stepper.feed_prompt(prompt);
    session_.select_sequence(0);
    if (!fed) return fed;
    Sequence& sequence = sequences_[index];
    sequence.generation.ids = stepper.ids();
    sequence.generation.prompt_runs = stepper.runs();
    runs_ += stepper.runs();
    seconds_ += stepper.seconds();
    return sample(index, sampler, stepper.logits());
  }

  [[nodiscard]] bool ended() const { return std::ranges::all_of(sequences_, &Sequence::ended); }

  // A token of every sequence. One that has ended repeats its last, at its last position, which
  // nobody reads.
  Status step(std::span<Sampler> samplers) {
    std::vector<std::uint32_t> tokens;
    std::vector<std::uint32_t> positions;
    for (const Sequence& s : sequences_) {
      tokens.push_back(s.ended ? s.generation.ids.back() : s.generation.sampled.back());
      positions.push_back(s.ended ? s.position() - 1 : s.position());
    }
    const auto begin = std::chrono::steady_clock::now();
    const auto logits = session_.step_batch(tokens, positions);
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (!logits) return tl::unexpected(logits.error());
    const std::size_t vocab = session_.manifest().vocab;
    for (std::size_t i = 0; i < sequences_.size(); ++i) {
      if (sequences_[i].ended) continue;
      sequences_[i].generation.ids.push_back(tokens[i]);
      auto sampled = sample(i, samplers[i], logits->subspan(i * vocab, vocab));
      if (!sampled) return sampled;
    }
    return {};
  }

  [[nodiscard]] BatchGeneration finish() && {
    BatchGeneration all{.sequences = {}, .prompt_runs = runs_, .seconds = seconds_};
    for (Sequence& s : sequences_) all.sequences.push_back(std::move(s.generation));
    return all;
  }

 private:
  void show(std::size_t index, std::uint32_t id) {
    if (token_) token_(index, sequences_[index].previous, id);
    sequences_[index].previous = id;
  }

  Status sample(std::size_t index, Sampler& sampler, std::span<const float> logits) {
    const auto id = sampler.pick(logits);
    if (!id) return tl::unexpected(id.error());
    Sequence& sequence = sequences_[index];
    Generation& generation = sequence.generation;
    generation.sampled.push_back(*id);
    sequence.ended = true;
    if (std::ranges::find(limits_.ends, *id) != limits_.ends.end()) {
      generation.end = GenerationEnd::EndToken;
      return {};
    }
    show(index, *id);
    if (generation.sampled.size() == limits_.max_tokens) return {};
    if (sequence.position() == session_.manifest().context) {
      generation.end = GenerationEnd::ContextEnd;
      return {};
    }
    sequence.ended = false;
    return {};
  }

  Session& session_;
  const GenerationLimits& limits_;
  const std::function<void(std::size_t, std::uint32_t, std::uint32_t)>& token_;
  std::vector<Sequence> sequences_;
  std::size_t runs_ = 0;
  double seconds_ = 0;
};

}  // namespace

Result<BatchGeneration> generate_batch(
    Session& session, std::span<Sampler> samplers,
    std::span<const std::vector<std::uint32_t>> prompts, const GenerationLimits& limits,
    const std::function<void(std::size_t, std::uint32_t, std::uint32_t)>& token) {
  if (prompts.size() != session.sequences() || samplers.size() != prompts.size()) {
    return fail(ErrorCode::Usage, "{} prompts, where the image decodes {} sequences side by side",
                prompts.size(), session.sequences());
  }
  for (const auto& prompt : prompts) {
    if (auto fits = check_ids(prompt, session.manifest()); !fits) {
      return tl::unexpected(fits.error());
    }
  }
  BatchStepper stepper(session, limits, token);
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    if (auto started = stepper.start(i, samplers[i], prompts[i]); !started) {
      return tl::unexpected(started.error());
    }
  }
  while (!stepper.ended()) {
    if (auto stepped = stepper.step(samplers); !stepped) return tl::unexpected(stepped.error());
  }
  return std::move(stepper).finish();
}

void FeedReport::score(std::span<const float> logits, std::uint32_t id) {
  const auto likeliest = std::max_element(logits.begin(), logits.end()) - logits.begin();
  ++scored;
  top1_hits += static_cast<std::uint32_t>(likeliest) == id ? 1 : 0;
  negative_log_likelihood += plena::negative_log_likelihood(logits, id);
}

double FeedReport::tokens_per_second() const {
  return rate(steps, seconds);
}

double FeedReport::perplexity() const {
  return scored == 0 ? 1.0 : std::exp(negative_log_likelihood / static_cast<double>(scored));
}

double FeedReport::top1_share() const {
  return scored == 0 ? 0.0 : static_cast<double>(top1_hits) / static_cast<double>(scored);
}

Result<FeedReport> feed(Session& session, std::span<const std::uint32_t> ids,
                        const GenerationHooks& hooks) {
  if (auto fits = check_ids(ids, session.manifest()); !fits) return tl::unexpected(fits.error());
  Stepper stepper(session, hooks);
  FeedReport report;
  for (const std::uint32_t id : ids) {
    if (const auto logits = stepper.logits(); !logits.empty()) report.score(logits, id);
    stepper.show(id);
    if (auto stepped = stepper.step(id); !stepped) return tl::unexpected(stepped.error());
  }
  report.steps = stepper.ids().size();
  report.seconds = stepper.seconds();
  return report;
}

double negative_log_likelihood(std::span<const float> logits, std::uint32_t id) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double{logit} - largest);
  return std::log(sum) + largest - double{logits[id]};
}

}  // namespace plena
