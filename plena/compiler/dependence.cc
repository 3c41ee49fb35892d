#include "plena/compiler/dependence.h"

#include <algorithm>
#include <array>

#include "plena/timing/timed_program.h"

namespace plena {

namespace {

// What a transfer is assumed to take: about what HBM2 does when a few are under way.
constexpr std::uint32_t kTileLatency = 160;
constexpr std::uint32_t kRowsLatency = 70;
// Until a store has handed over its bursts, and what loads them may issue.
constexpr std::uint32_t kStoreLatency = 60;

bool is_compute(const TimedInstruction& i) {
  return i.kind == TimedKind::Compute;
}

class Finder {
 public:
  Finder(const StraightBlock& block, const ScheduleCosts& costs, const TimedProgram& timed)
      : block_(block), costs_(costs), timed_(timed.timed), out_(block.nodes.size()) {}

  std::vector<DependenceNode> find() {
    for (std::size_t n = 0; n < out_.size(); ++n) describe(n);
    for (std::size_t n = 0; n < out_.size(); ++n) {
      wait_for_values(n);
      wait_for_specials(n);
      wait_for_memories(n);
      wait_for_unit(n);
    }
    wait_for_readers();
    return std::move(out_);
  }

 private:
  void describe(std::size_t n) {
    const TimedInstruction& i = timed_[n];
    out_[n].unit = i.unit;
    out_[n].latency = i.latency;
    out_[n].interval = i.interval;
    if (i.unit == Unit::LoadM) out_[n].latency += kTileLatency;
    if (i.unit == Unit::LoadV) out_[n].latency += kRowsLatency;
    accesses_.push_back(
        accesses_of(block_.nodes[n].instruction, block_.nodes[n].gp, costs_.settings));
  }

  void edge(std::size_t from, std::size_t to, std::uint32_t delay) {
    if (from == to) return;
    out_[from].after.push_back({to, std::max(delay, 1U)});
    ++out_[to].before;
  }

  // A result of `from` reaches `to`. That of a write-out follows from the last compute (rule 4).
  void reach(std::size_t from, std::size_t to) {
    edge(from, to, out_[from].latency);
    if (timed_[from].kind != TimedKind::WriteOut) return;
    for (std::size_t c = from; c-- > 0;) {
      if (!is_compute(timed_[c])) continue;
      return edge(c, to, out_[c].latency + out_[from].latency);
    }
  }

  void wait_for_values(std::size_t n) {
    for (const int source : block_.nodes[n].sources) {
      if (source == kNoValue) continue;
      const int maker = block_.values[static_cast<std::size_t>(source)].node;
      if (maker >= 0) reach(static_cast<std::size_t>(maker), n);
    }
  }

  // Who overwrites a register waits for those who read what was there: an accumulation for readers
  // of the sum so far, the value a register has at the exit for readers of that at the entry.
  void wait_for_readers() {
    std::vector<std::vector<std::size_t>> readers(block_.values.size());
    for (std::size_t n = 0; n < out_.size(); ++n) {
      for (const int source : block_.nodes[n].sources) {
        if (source != kNoValue) readers[static_cast<std::size_t>(source)].push_back(n);
      }
    }
    for (std::size_t n = 0; n < out_.size(); ++n) {
      const BlockNode& node = block_.nodes[n];
      if (node.result == kNoValue) continue;
      const auto overwritten = node.accumulates ? node.sources[0] : entry_overwritten_by(node);
      if (overwritten == kNoValue) continue;
      for (const std::size_t reader : readers[static_cast<std::size_t>(overwritten)]) {
        edge(reader, n, 1);
      }
    }
  }
  [[nodiscard]] int entry_overwritten_by(const BlockNode& node) const {
    const RegisterValue& result = block_.values[static_cast<std::size_t>(node.result)];
    const ValueWeb& web = block_.webs[result.web];
    return web.at_exit ? static_cast<int>(web.reg) : kNoValue;
  }

  // Address registers, SCALE_REG, STRIDE_REG and V_MASK.
  void wait_for_specials(std::size_t n) {
    for (const Slot slot : timed_[n].sources) {
      if (slot < kAddrSlot) continue;
      if (special_writer_[slot] != kNobody) reach(special_writer_[slot], n);
      special_readers_[slot].push_back(n);
    }
    const Slot to = timed_[n].destination;
    if (to < kAddrSlot || to == kSinkSlot) return;
    if (special_writer_[to] != kNobody) reach(special_writer_[to], n);
    for (const std::size_t reader : special_readers_[to]) edge(reader, n, out_[reader].interval);
    special_readers_[to].clear();
    special_writer_[to] = n;
  }

  void wait_for_memories(std::size_t n) {
    for (std::size_t earlier = 0; earlier < n; ++earlier) {
      for (const MemoryAccess& a : accesses_[earlier]) {
        for (const MemoryAccess& b : accesses_[n]) {
          if (a.write || b.write) wait_for_access(earlier, a, n, b);
        }
      }
    }
  }
  void wait_for_access(std::size_t earlier, const MemoryAccess& a, std::size_t n,
                       const MemoryAccess& b) {
    switch (meeting(a, b, costs_.bases_apart)) {
      case Meeting::Never:
        return;
      case Meeting::Perhaps:
        if (a.memory == Memory::Hbm && a.write && !b.write) out_[n].follows_store = true;
        return edge(earlier, n, a.memory == Memory::Hbm && a.write && !b.write ? kStoreLatency : 1);
      case Meeting::Surely:
        return a.write ? reach(earlier, n) : edge(earlier, n, out_[earlier].interval);
    }
  }

  // The array keeps the order of everything (semantics 4.5), an HBM unit that of its transfers.
  void wait_for_unit(std::size_t n) {
    const Unit unit = out_[n].unit;
    if (unit != Unit::Matrix && !is_transfer_unit(unit)) return;
    std::size_t& last = last_of_unit_[static_cast<std::size_t>(unit)];
    if (last != kNobody) edge(last, n, out_[last].interval);
    last = n;
  }

  static constexpr std::size_t kNobody = ~std::size_t{0};
  static constexpr std::array<std::size_t, kSlotCount> nobody() {
    std::array<std::size_t, kSlotCount> all{};
    all.fill(kNobody);
    return all;
  }

  const StraightBlock& block_;
  const ScheduleCosts& costs_;
  const std::vector<TimedInstruction>& timed_;
  std::vector<DependenceNode> out_;
  std::vector<std::vector<MemoryAccess>> accesses_;
  std::array<std::size_t, kSlotCount> special_writer_ = nobody();
  std::array<std::vector<std::size_t>, kSlotCount> special_readers_;
  std::array<std::size_t, kSlotCount> last_of_unit_ = nobody();
};

}  // namespace

Result<std::vector<DependenceNode>> find_dependences(const StraightBlock& block,
                                                     const ScheduleCosts& costs) {
  std::vector<Instruction> instructions;
  for (const BlockNode& node : block.nodes) instructions.push_back(node.instruction);
  auto timed =
      TimedProgram::create(std::move(instructions), costs.settings, costs.dialect, costs.profile);
  if (!timed) return forward_error(timed);
  return Finder(block, costs, *timed).find();
}

}  // namespace plena
