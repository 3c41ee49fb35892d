// A line on the terminal that says how far long work is.
#pragma once

#include <cstdint>
#include <string>

#include "plena/cli/context.h"

namespace plena {

/// Shows nothing where no progress is wanted; the line goes when the object does.
class Progress {
 public:
  Progress(const Context& context, std::string name, std::uint64_t steps = 0);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  /// So many more of the steps are done.
  void step(std::uint64_t count = 1) { show(done_ + count, steps_); }
  /// `done` of `all` are.
  void show(std::uint64_t done, std::uint64_t all);

 private:
  bool shown_;
  std::string name_;
  std::uint64_t steps_;
  std::uint64_t done_ = 0;
  std::uint64_t percent_ = 0;
};

}  // namespace plena
