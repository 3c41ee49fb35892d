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
  Scorer(Session& session, const std::function<void()>& step) : session_(session), step_(step) {}

  // The last token of a window predicts nothing in it and is not run.
  Status run(std::span<const std::uint32_t> tokens, std::size_t begin, std::size_t end,
             std::size_t first_scored) {
    for (std::size_t t = begin; t + 1 < end; ++t) {
      const auto logits = session_.step(tokens[t], static_cast<std::uint32_t>(t - begin));
      if (!logits) return tl::unexpected(logits.error());
      ++report.steps;
      if (t + 1 >= first_scored) report.score(*logits, tokens[t + 1]);
      if (step_) step_();
    }
    return {};
  }

  PerplexityReport report;

 private:
  Session& session_;
  const std::function<void()>& step_;
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

std::uint64_t count_steps(std::span<const Ids> documents, SlidingWindow window,
                          std::uint32_t context) {
  window = resolve(window, context);
  if (!check(window, context)) return 0;
  std::uint64_t steps = 0;
  for (const Ids& document : documents) {
    (void)for_each_window(document.size(), window, [&](auto begin, auto end, auto) {
      steps += end - begin - 1;
      return Status();
    });
  }
  return steps;
}

Result<PerplexityReport> score(Session& session, std::span<const Ids> documents,
                               SlidingWindow window, const std::function<void()>& step) {
  window = resolve(window, session.manifest().context);
  if (auto fits = check(window, session.manifest().context); !fits)
    return tl::unexpected(fits.error());
  if (auto known = check_vocabulary(documents, session.manifest().vocab); !known)
    return tl::unexpected(known.error());
  const auto begin = std::chrono::steady_clock::now();
  Scorer scorer(session, step);
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
