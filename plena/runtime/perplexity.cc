#include "plena/runtime/perplexity.h"

#include <algorithm>
#include <chrono>

namespace plena {

namespace {

using Ids = std::vector<std::uint32_t>;

SlidingWindow resolve(SlidingWindow window, std::uint32_t context) {
  if (window.length == 0) window.length = context;
  if (window.stride == 0) window.stride = std::max(1U, window.length / 2);
  return window;
}

Status check(SlidingWindow window, std::uint32_t context) {
  if (window.length < 2 || window.length > context) {
    return fail_with_hint(ErrorCode::Usage, fmt::format("the window is {} tokens", window.length),
                          fmt::format("from 2 up to the model's context of {}", context));
  }
  if (window.stride > window.length) {
    return fail_with_hint(ErrorCode::Usage,
                          fmt::format("a stride of {} leaves tokens between windows of {}",
                                      window.stride, window.length),
                          "a stride up to the window");
  }
  return {};
}

// Calls run(begin, end, first_scored) for the windows of a document.
template <class Run>
Status for_each_window(std::size_t tokens, SlidingWindow window, Run&& run) {
  for (std::size_t begin = 0, scored = 1; scored < tokens; begin += window.stride) {
    const std::size_t end = std::min<std::size_t>(begin + window.length, tokens);
    if (auto ran = run(begin, end, scored); !ran) return ran;
    scored = end;
  }
  return {};
}

class Scorer {
 public:
  Scorer(Session& session, const std::function<void(std::uint64_t)>& fed)
      : session_(session), fed_(fed) {}

  // The last token of a window predicts nothing in it and is not run.
  Status run(std::span<const std::uint32_t> tokens, std::size_t begin, std::size_t end,
             std::size_t first_scored) {
    for (std::size_t t = begin; t + 1 < end;) {
      const auto position = static_cast<std::uint32_t>(t - begin);
      const std::size_t count = std::min<std::size_t>(tokens_at_once(position), end - 1 - t);
      const auto logits = run_at(tokens.subspan(t, count), position);
      if (!logits) return tl::unexpected(logits.error());
      const std::size_t vocab = session_.manifest().vocab;
      for (std::size_t i = 0; i < count; ++i, ++t) {
        if (t + 1 >= first_scored) report.score(logits->subspan(i * vocab, vocab), tokens[t + 1]);
      }
      report.steps += count;
      if (fed_) fed_(count);
    }
    return {};
  }

  PerplexityReport report;

 private:
  [[nodiscard]] std::uint32_t tokens_at_once(std::uint32_t position) const {
    const auto& block = session_.manifest().block;
    if (!block || !block->has_all_logits()) return 1;
    return std::max(1U, session_.block_tokens(position));
  }
  Result<std::span<const float>> run_at(std::span<const std::uint32_t> tokens,
                                        std::uint32_t position) {
    return tokens_at_once(position) > 1 ? session_.run_block(tokens, position)
                                        : session_.step(tokens[0], position);
  }

  Session& session_;
  const std::function<void(std::uint64_t)>& fed_;
};

Status check_vocabulary(std::span<const Ids> documents, std::uint32_t vocab) {
  for (const Ids& document : documents) {
    const auto wrong = std::ranges::find_if(document, [&](auto id) { return id >= vocab; });
    if (wrong != document.end())
      return fail(ErrorCode::Usage, "token {} is not in the vocabulary of {}", *wrong, vocab);
  }
  return {};
}

}  // namespace

std::uint64_t count_tokens(std::span<const Ids> documents, SlidingWindow window,
                           std::uint32_t context) {
  window = resolve(window, context);
  if (!check(window, context)) return 0;
  std::uint64_t tokens = 0;
  for (const Ids& document : documents) {
    (void)for_each_window(document.size(), window, [&](auto begin, auto end, auto) {
      tokens += end - begin - 1;
      return Status();
    });
  }
  return tokens;
}

Result<PerplexityReport> score(Session& session, std::span<const Ids> documents,
                               SlidingWindow window,
                               const std::function<void(std::uint64_t)>& fed) {
  window = resolve(window, session.manifest().context);
  if (auto fits = check(window, session.manifest().context); !fits)
    return tl::unexpected(fits.error());
  if (auto known = check_vocabulary(documents, session.manifest().vocab); !known)
    return tl::unexpected(known.error());
  const auto begin = std::chrono::steady_clock::now();
  Scorer scorer(session, fed);
  for (const Ids& document : documents) {
    auto scored = for_each_window(document.size(), window, [&](auto from, auto to, auto first) {
      return scorer.run(document, from, to, first);
    });
    if (!scored) return tl::unexpected(scored.error());
  }
  scorer.report.documents = documents.size();
  scorer.report.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return scorer.report;
}

}  // namespace plena
