// Threads for products too large for one. Columns of a product do not depend on each other, so who
// computes which, and when, changes no bit.
//
// Our own, where oneTBB would do: its library takes longer to load than plena takes to start, and
// the thread sanitizer cannot see into it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace plena {

class Workers {
 public:
  /// Multiply-adds below which a product is quicker on one thread than handed out.
  static constexpr std::uint64_t kLeastWork = std::uint64_t{1} << 22;

  /// `threads` in all, the calling one among them; 0: as many as the host has processors. None is
  /// started before there is work for it. With a `least_work` of 0 everything is shared, however
  /// small: for tests.
  explicit Workers(unsigned threads, std::uint64_t least_work = kLeastWork);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  [[nodiscard]] unsigned threads() const { return threads_; }
  [[nodiscard]] bool shares_all() const { return least_work_ == 0; }

  /// work(i) once for each i < parts, on this thread and the others, in any order; returns when all
  /// are done. Parts are handed out one by one, and nobody waits for a thread that took none: one
  /// whose processor is busy elsewhere holds up the part it has, or nothing.
  template <class Work>
  void run(std::size_t parts, const Work& work) {
    run_job(
        parts, [](const void* context, std::size_t i) { (*static_cast<const Work*>(context))(i); },
        &work);
  }

  /// run() of pieces of at most `piece` columns of `columns`, as work(first, count), where the
  /// whole of it, `work_per_column` multiply-adds each, is worth it; else work(0, columns).
  template <class Work>
  void split(std::size_t columns, std::size_t piece, std::uint64_t work_per_column,
             const Work& work) {
    if (shares_all()) piece = std::min(piece, (columns + threads_ - 1) / threads_);
    if (threads_ == 1 || columns <= piece || columns * work_per_column < least_work_)
      return work(std::size_t{0}, columns);
    run((columns + piece - 1) / piece, [&](std::size_t i) {
      const std::size_t first = i * piece;
      work(first, first + piece < columns ? piece : columns - first);
    });
  }

  using Part = void (*)(const void* context, std::size_t i);

  /// A job whose parts are not all known yet: part(context, i) once for each i that was offered,
  /// by the other threads as soon as it is, by this one in close(), which returns when all are
  /// done. Meanwhile run() and split() keep to this thread.
  void open(Part part, const void* context);
  /// Parts 0 … parts - 1 may begin.
  void offer(std::size_t parts);
  void close();

 private:
  void run_job(std::size_t parts, Part part, const void* context);
  void start();
  void serve();
  void take_parts();

  unsigned threads_;
  std::uint64_t least_work_;
  std::vector<std::thread> helpers_;
  bool open_ = false;  // between open() and close()

  // The job and its next part: job number << 32 | part. Whoever moves it on has the part, and has
  // read the job's members below as they are while its number stands here.
  std::atomic<std::uint64_t> ticket_{0};
  std::atomic<Part> part_{nullptr};
  std::atomic<const void*> context_{nullptr};
  std::atomic<std::uint32_t> parts_{0};
  std::atomic<std::uint32_t> done_{0};  // parts
  std::atomic<std::uint32_t> jobs_{0};  // counts up with each offer; helpers sleep on it
  std::atomic<bool> ended_{false};
};

}  // namespace plena
