#include "plena/sim/workers.h"

#include <algorithm>

namespace plena {

namespace {

// Looks that a thread takes before it sleeps: some ten microseconds, about what waking it costs.
constexpr int kLooks = 2000;

constexpr std::uint64_t kNoPart = UINT32_MAX;  // of a ticket: all are taken

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Returns once `value` is no longer `old`.
void wait_for_change(const std::atomic<std::uint32_t>& value, std::uint32_t old) {
  for (int look = 0; look < kLooks; ++look) {
    if (value.load(std::memory_order_acquire) != old) return;
    pause();
  }
  value.wait(old, std::memory_order_acquire);
}

}  // namespace

Workers::Workers(unsigned threads, std::uint64_t least_work)
    : threads_(threads != 0 ? threads : std::max(1U, std::thread::hardware_concurrency())),
      least_work_(least_work) {}

Workers::~Workers() {
  ended_.store(true, std::memory_order_relaxed);
  jobs_.fetch_add(1, std::memory_order_release);
  jobs_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

void Workers::start() {
  helpers_.reserve(threads_ - 1);
  for (unsigned i = 1; i < threads_; ++i) helpers_.emplace_back([this] { serve(); });
}

void Workers::run_job(std::size_t parts, Part part, const void* context) {
  if (open_) {
    for (std::size_t i = 0; i < parts; ++i) part(context, i);
    return;
  }
  open(part, context);
  offer(parts);
  close();
}

// Every store releases and every load acquires: who has seen a member of this job has seen that the
// ticket of the one before is void, and fails to move it on.
void Workers::open(Part part, const void* context) {
  if (helpers_.empty() && threads_ > 1) start();
  const std::uint64_t job = (ticket_.load() >> 32) + 1;
  ticket_.store(job << 32 | kNoPart);
  part_.store(part);
  context_.store(context);
  parts_.store(0);
  done_.store(0);
  ticket_.store((job + 1) << 32);
  open_ = true;
}

void Workers::offer(std::size_t parts) {
  parts_.store(static_cast<std::uint32_t>(parts));
  jobs_.fetch_add(1);
  jobs_.notify_all();
}

void Workers::close() {
  take_parts();
  const std::uint32_t parts = parts_.load();
  for (std::uint32_t done = done_.load(); done != parts; done = done_.load())
    wait_for_change(done_, done);
  open_ = false;
}

void Workers::take_parts() {
  std::uint64_t ticket = ticket_.load();
  while (true) {
    const Part part = part_.load();
    const void* const context = context_.load();
    const std::uint32_t parts = parts_.load();
    const auto i = static_cast<std::uint32_t>(ticket);
    if (i >= parts) return;
    if (!ticket_.compare_exchange_weak(ticket, ticket + 1)) continue;
    part(context, i);
    done_.fetch_add(1);
    done_.notify_one();
    ticket = ticket_.load();
  }
}

void Workers::serve() {
  for (std::uint32_t seen = 0; !ended_.load();) {
    wait_for_change(jobs_, seen);
    seen = jobs_.load();
    take_parts();
  }
}

}  // namespace plena
