#include "plena/compiler/list_schedule.h"

#include <algorithm>
#include <array>

#include "plena/compiler/block_registers.h"

namespace plena {

namespace {

using Cycles = std::uint64_t;

// When nodes may issue on a machine that issues one a cycle, in the order it is told.
class IssueClock {
 public:
  explicit IssueClock(std::span<const DependenceNode> nodes)
      : nodes_(nodes), earliest_(nodes.size(), 0) {}

  [[nodiscard]] Cycles start(std::size_t n) const {
    return std::max({now_, earliest_[n], unit_free_[static_cast<std::size_t>(nodes_[n].unit)]});
  }
  void issue(std::size_t n, Cycles at) {
    const DependenceNode& node = nodes_[n];
    unit_free_[static_cast<std::size_t>(node.unit)] = at + node.interval;
    for (const DependenceEdge& edge : node.after) {
      earliest_[edge.node] = std::max(earliest_[edge.node], at + edge.delay);
    }
    now_ = at + 1;
    // Nobody waits for a transfer just because the block ends.
    if (!is_transfer_unit(node.unit)) done_ = std::max(done_, at + node.latency);
  }
  [[nodiscard]] Cycles now() const { return now_; }
  [[nodiscard]] Cycles done() const { return std::max(done_, now_); }

 private:
  std::span<const DependenceNode> nodes_;
  std::vector<Cycles> earliest_;
  std::array<Cycles, kUnitCount> unit_free_{};
  Cycles now_ = 0;
  Cycles done_ = 0;
};

// Cycles from a node's issue to the last result that waits for it.
std::vector<Cycles> path_lengths(std::span<const DependenceNode> nodes) {
  std::vector<Cycles> lengths(nodes.size());
  for (std::size_t n = nodes.size(); n-- > 0;) {
    const bool waited_for = !is_transfer_unit(nodes[n].unit) || nodes[n].follows_store;
    lengths[n] = waited_for ? nodes[n].latency : 1;
    for (const DependenceEdge& edge : nodes[n].after) {
      lengths[n] = std::max(lengths[n], edge.delay + lengths[edge.node]);
    }
  }
  return lengths;
}

// How far a schedule may look ahead.
struct LookAhead {
  std::size_t window = SIZE_MAX;  // nodes behind the first that has not issued
  Cycles horizon = 0;             // cycles a pointer or constant may be made too early
  bool lends = false;             // registers of values at the exit
};

// A schedule with as many registers as it takes: when its nodes issue, and when results that can
// be made at any time are read first.
struct FreeSchedule {
  std::vector<Cycles> issued;
  std::vector<Cycles> wanted;  // of nodes that can issue at any time
  std::vector<bool> any_time;
};

class Scheduler {
 public:
  Scheduler(const StraightBlock& block, std::span<const DependenceNode> nodes,
            const std::vector<Cycles>& lengths)
      : block_(block),
        nodes_(nodes),
        lengths_(lengths),
        waits_(nodes.size()),
        times_(nodes.size(), kNever),
        clock_(nodes) {
    for (std::size_t n = 0; n < nodes.size(); ++n) waits_[n] = nodes[n].before;
  }

  // Issue times with as many registers as it takes.
  std::vector<Cycles> run_free() {
    while (order_.size() < nodes_.size()) issue(*choose([](std::size_t) { return true; }));
    return std::move(times_);
  }

  std::optional<BlockSchedule> run(const FreeSchedule& free, const LookAhead& look_ahead) {
    window_ = look_ahead.window;
    BlockRegisters registers(block_, look_ahead.lends);
    Cycles behind = 0;  // the free schedule
    while (order_.size() < nodes_.size()) {
      const auto next = choose([&](std::size_t n) {
        if (!registers.has_room(block_.nodes[n], n == first_ ? 0 : 1)) return false;
        return n == first_ || !free.any_time[n] ||
               free.wanted[n] + behind <= clock_.now() + look_ahead.horizon;
      });
      if (!next) return std::nullopt;
      issue(*next);
      registers.issue(block_.nodes[*next]);
      if (!free.any_time[*next] && times_[*next] > free.issued[*next]) {
        behind = std::max(behind, times_[*next] - free.issued[*next]);
      }
    }
    return BlockSchedule{std::move(order_), registers.given(), clock_.done()};
  }

 private:
  static constexpr Cycles kNever = ~Cycles{0};

  // Of the nodes that nobody holds up the one that issues first; of several the one with the
  // longest path behind it.
  template <class Allowed>
  std::optional<std::size_t> choose(Allowed&& allowed) {
    while (times_[first_] != kNever) ++first_;
    std::optional<std::size_t> best;
    Cycles best_start = 0;
    const std::size_t end = first_ + std::min(nodes_.size() - first_, window_);
    for (std::size_t n = first_; n < end; ++n) {
      if (times_[n] != kNever || waits_[n] != 0 || !allowed(n)) continue;
      const Cycles start = clock_.start(n);
      const bool sooner = !best || start < best_start;
      if (!sooner && (start > best_start || lengths_[n] <= lengths_[*best])) continue;
      best = n;
      best_start = start;
    }
    return best;
  }

  void issue(std::size_t n) {
    times_[n] = clock_.start(n);
    clock_.issue(n, times_[n]);
    order_.push_back(n);
    for (const DependenceEdge& edge : nodes_[n].after) --waits_[edge.node];
  }

  const StraightBlock& block_;
  std::span<const DependenceNode> nodes_;
  const std::vector<Cycles>& lengths_;
  std::size_t window_ = SIZE_MAX;
  std::vector<std::size_t> waits_;  // edges from nodes that have not issued
  std::vector<Cycles> times_;       // of issue
  std::size_t first_ = 0;           // that has not issued
  IssueClock clock_;
  std::vector<std::size_t> order_;
};

// Makes a pointer or a constant from what is there at the entry.
bool issues_any_time(const StraightBlock& block, const BlockNode& node) {
  const Op op = node.instruction.op;
  if (op != Op::S_ADDI_INT && op != Op::S_LUI_INT && op != Op::S_LD_FP) return false;
  for (const int source : node.sources) {
    if (source != kNoValue && block.values[static_cast<std::size_t>(source)].node >= 0)
      return false;
  }
  if (node.result == kNoValue) return false;
  return !block.webs[block.values[static_cast<std::size_t>(node.result)].web].at_exit;
}

FreeSchedule schedule_freely(const StraightBlock& block, std::span<const DependenceNode> nodes,
                             const std::vector<Cycles>& lengths) {
  FreeSchedule free;
  free.issued = Scheduler(block, nodes, lengths).run_free();
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    Cycles wanted = ~Cycles{0} >> 1;
    for (const DependenceEdge& edge : nodes[n].after) {
      wanted = std::min(wanted, free.issued[edge.node]);
    }
    free.wanted.push_back(wanted);
    free.any_time.push_back(issues_any_time(block, block.nodes[n]));
  }
  return free;
}

}  // namespace

std::vector<BlockSchedule> list_schedules(const StraightBlock& block,
                                          std::span<const DependenceNode> dependences) {
  const std::vector<Cycles> lengths = path_lengths(dependences);
  const FreeSchedule free = schedule_freely(block, dependences, lengths);
  std::vector<BlockSchedule> schedules;
  for (const std::size_t window : {SIZE_MAX, std::size_t{64}, std::size_t{32}, std::size_t{16},
                                   std::size_t{8}, std::size_t{1}}) {
    for (const Cycles horizon : {Cycles{8}, Cycles{24}, Cycles{400}}) {
      for (const bool lends : {false, true}) {
        auto schedule = Scheduler(block, dependences, lengths).run(free, {window, horizon, lends});
        const auto same = [&](const BlockSchedule& other) {
          return other.order == schedule->order && other.registers == schedule->registers;
        };
        if (schedule && std::ranges::none_of(schedules, same)) {
          schedules.push_back(*std::move(schedule));
        }
      }
    }
  }
  return schedules;
}

std::optional<BlockSchedule> list_schedule(const StraightBlock& block,
                                           std::span<const DependenceNode> dependences) {
  std::vector<BlockSchedule> schedules = list_schedules(block, dependences);
  const auto best = std::ranges::min_element(schedules, {}, &BlockSchedule::cycles);
  if (best == schedules.end()) return std::nullopt;
  return std::move(*best);
}

std::uint64_t cycles_in_order(std::span<const DependenceNode> dependences) {
  IssueClock clock(dependences);
  for (std::size_t n = 0; n < dependences.size(); ++n) clock.issue(n, clock.start(n));
  return clock.done();
}

}  // namespace plena
