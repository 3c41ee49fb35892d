#include "plena/base/parallel.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace plena {

namespace {

// The error of the first piece that failed.
class FirstError {
 public:
  void keep(std::size_t piece, Error error) {
    const std::lock_guard lock(mutex_);
    if (error_ && piece_ < piece) return;
    piece_ = piece;
    error_ = std::move(error);
    failed_ = true;
  }
  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] Status status() && {
    if (error_) return tl::unexpected(*std::move(error_));
    return {};
  }

 private:
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;
  std::size_t piece_ = 0;
  std::optional<Error> error_;
};

}  // namespace

Status for_each_piece(std::size_t count, const std::function<Status(std::size_t)>& work) {
  FirstError error;
  std::atomic<std::size_t> next = 0;
  const auto take_pieces = [&] {
    while (!error.failed()) {
      const std::size_t piece = next++;
      if (piece >= count) return;
      if (auto done = work(piece); !done) error.keep(piece, std::move(done.error()));
    }
  };
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::jthread> threads;
  for (std::size_t i = 1; i < std::min(cores, count); ++i) threads.emplace_back(take_pieces);
  take_pieces();
  threads.clear();  // waits for them
  return std::move(error).status();
}

}  // namespace plena
