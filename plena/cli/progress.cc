#include "plena/cli/progress.h"

#include <cstdio>
#include <utility>

namespace plena {

Progress::Progress(const Context& context, std::string name, std::uint64_t steps)
    : shown_(context.shows_progress()), name_(std::move(name)), steps_(steps) {}

Progress::~Progress() {
  if (shown_) fmt::print(stderr, "\r\x1b[K");
}

void Progress::show(std::uint64_t done, std::uint64_t all) {
  done_ = done;
  const std::uint64_t percent = all == 0 ? 0 : done * 100 / all;
  if (!shown_ || percent == percent_) return;
  percent_ = percent;
  fmt::print(stderr, "\r{}: {} %", name_, percent_);
}

}  // namespace plena
