#include "plena/runtime/generation.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

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
    logits_ = session_.manifest().causal ? logits->last(session_.manifest().vocab) : *logits;
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

// One of several texts: what it has said and where it stands.
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
  BatchStepper(Session& session, std::span<Sampler> samplers,
               std::span<const std::vector<std::uint32_t>> prompts, const GenerationLimits& limits,
               const std::function<void(std::size_t, std::uint32_t, std::uint32_t)>& token)
      : session_(session),
        samplers_(samplers),
        prompts_(prompts),
        limits_(limits),
        token_(token),
        sequences_(prompts.size()),
        places_(session.sequences()) {}

  // Prompts to places that are free, until none is, or nobody waits.
  Status fill_places() {
    for (std::size_t place = 0; place < places_.size(); ++place) {
      while (next_ < prompts_.size() && is_free(place)) {
        if (auto started = start(place, next_++); !started) return started;
      }
    }
    if (common_tokens_ == 0) prompt_runs_ = runs_;
    return {};
  }

  [[nodiscard]] bool ended() const {
    return next_ == prompts_.size() && std::ranges::all_of(sequences_, &Sequence::ended);
  }

  // A token of every place. A text that has ended repeats its last, at its last position, which
  // nobody reads; so does a place that nobody had with any token.
  Status step() {
    std::vector<std::uint32_t> tokens(places_.size(), 0);
    std::vector<std::uint32_t> positions(places_.size(), 0);
    for (std::size_t place = 0; place < places_.size(); ++place) {
      if (!places_[place]) continue;
      const Sequence& s = sequences_[*places_[place]];
      tokens[place] = s.ended ? s.generation.ids.back() : s.generation.sampled.back();
      positions[place] = s.ended ? s.position() - 1 : s.position();
    }
    const auto begin = std::chrono::steady_clock::now();
    const auto logits = session_.step_batch(tokens, positions);
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (!logits) return tl::unexpected(logits.error());
    const std::size_t vocab = session_.manifest().vocab;
    for (std::size_t place = 0; place < places_.size(); ++place) {
      if (is_free(place)) continue;
      const std::size_t index = *places_[place];
      sequences_[index].generation.ids.push_back(tokens[place]);
      ++common_tokens_;
      auto sampled = sample(index, logits->subspan(place * vocab, vocab));
      if (!sampled) return sampled;
    }
    return {};
  }

  [[nodiscard]] BatchGeneration finish() && {
    BatchGeneration all{.sequences = {},
                        .prompt_runs = prompt_runs_,
                        .common_tokens = common_tokens_,
                        .seconds = seconds_};
    for (Sequence& s : sequences_) all.sequences.push_back(std::move(s.generation));
    return all;
  }

 private:
  [[nodiscard]] bool is_free(std::size_t place) const {
    return !places_[place] || sequences_[*places_[place]].ended;
  }

  // Feeds a prompt at a place and samples its first token.
  Status start(std::size_t place, std::size_t index) {
    places_[place] = index;
    session_.select_sequence(static_cast<std::uint32_t>(place));
    GenerationHooks hooks;
    hooks.token = [&](std::uint32_t /*previous*/, std::uint32_t id) { show(index, id); };
    Stepper stepper(session_, hooks);
    auto fed = stepper.feed_prompt(prompts_[index]);
    session_.select_sequence(0);
    if (!fed) return fed;
    Sequence& sequence = sequences_[index];
    sequence.generation.ids = stepper.ids();
    sequence.generation.prompt_runs = stepper.runs();
    runs_ += stepper.runs();
    seconds_ += stepper.seconds();
    return sample(index, stepper.logits());
  }

  void show(std::size_t index, std::uint32_t id) {
    if (token_) token_(index, sequences_[index].previous, id);
    sequences_[index].previous = id;
  }

  Status sample(std::size_t index, std::span<const float> logits) {
    const auto id = samplers_[index].pick(logits);
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
  std::span<Sampler> samplers_;
  std::span<const std::vector<std::uint32_t>> prompts_;
  const GenerationLimits& limits_;
  const std::function<void(std::size_t, std::uint32_t, std::uint32_t)>& token_;
  std::vector<Sequence> sequences_;                 // one a prompt
  std::vector<std::optional<std::size_t>> places_;  // the sequence at each
  std::size_t next_ = 0;                            // prompt that waits for a place
  std::size_t runs_ = 0;
  std::size_t prompt_runs_ = 0;
  std::uint64_t common_tokens_ = 0;
  double seconds_ = 0;
};

}  // namespace

Result<BatchGeneration> generate_batch(
    Session& session, std::span<Sampler> samplers,
    std::span<const std::vector<std::uint32_t>> prompts, const GenerationLimits& limits,
    const std::function<void(std::size_t, std::uint32_t, std::uint32_t)>& token) {
  if (prompts.empty() || samplers.size() != prompts.size() || session.sequences() < 2) {
    return fail(ErrorCode::Usage,
                "{} prompts and {} samplers, where the image decodes {} sequences side by side",
                prompts.size(), samplers.size(), session.sequences());
  }
  for (const auto& prompt : prompts) {
    if (auto fits = check_ids(prompt, session.manifest()); !fits) {
      return tl::unexpected(fits.error());
    }
  }
  BatchStepper stepper(session, samplers, prompts, limits, token);
  if (auto filled = stepper.fill_places(); !filled) return tl::unexpected(filled.error());
  while (!stepper.ended()) {
    if (auto stepped = stepper.step(); !stepped) return tl::unexpected(stepped.error());
    if (auto filled = stepper.fill_places(); !filled) return tl::unexpected(filled.error());
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
