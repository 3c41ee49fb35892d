// Loops and breaks under rs-loops and rs-break, and words that fault only when reached under
// rs-decode (dialect-plena-rs.md 0 and 4). Loops live on a stack here, as in the emulator.
#include <algorithm>

#include <fmt/format.h>

#include "plena/sim/prepared.h"

namespace plena {

namespace {

bool trap(Execution& x, TrapCause cause, std::string values, std::string rule) {
  x.note_fault(cause, std::move(values), std::move(rule));
  return false;
}

bool loop_start(Execution& x, const Prepared& i) {
  if (i.imm == 0) {
    return trap(x, TrapCause::LoopStructure, "0 iterations",
                "a loop runs at least once (semantics 6.11)");
  }
  if (i.rd == 0 && !x.program.dialect.has(RsSwitch::Registers)) {
    return trap(x, TrapCause::LoopStructure, "counter gp0",
                "gp0 cannot hold a loop counter (semantics 6.17)");
  }
  x.machine.gp[i.rd] = i.imm;
  x.machine.loops.push_back({static_cast<std::uint32_t>(x.next_pc), i.rd, 0});
  ++x.next_pc;
  return true;
}

// The innermost stacked loop with this counter, wherever it is in the stack.
bool loop_end(Execution& x, const Prepared& i) {
  auto& loops = x.machine.loops;
  const auto found = std::find_if(loops.rbegin(), loops.rend(),
                                  [&](const LoopFrame& l) { return l.counter == i.rd; });
  if (found == loops.rend()) {
    if (x.program.dialect.has(RsSwitch::Loops)) {
      return trap(x, TrapCause::LoopStructure, fmt::format("no loop counts gp{}", i.rd),
                  "C_LOOP_END closes a loop that runs (dialect-plena-rs.md 4)");
    }
    // rs-break alone: the loop was popped by C_BREAK, and its counter is 0.
    ++x.next_pc;
    return true;
  }
  std::uint32_t& counter = x.machine.gp[i.rd];
  if (counter > 1) {
    --counter;
    found->instructions = 0;
    x.next_pc = found->start + 1;
    return true;
  }
  counter = 0;
  loops.erase(std::next(found).base());
  ++x.next_pc;
  return true;
}

// rs-break: pops the innermost loop, zeroes its register and goes on with the next instruction.
bool pop_loop(Execution& x, const Prepared& /*i*/) {
  auto& loops = x.machine.loops;
  if (loops.empty()) {
    return trap(x, TrapCause::LoopStructure, "no loop is active",
                "C_BREAK leaves a loop (dialect-plena-rs.md 4)");
  }
  x.machine.gp[loops.back().counter] = 0;
  loops.pop_back();
  ++x.next_pc;
  return true;
}

}  // namespace

bool illegal_when_reached(Execution& x, const Prepared& i) {
  return trap(x, TrapCause::IllegalInstruction, fmt::format("word 0x{:08X}", i.imm),
              "the word is no instruction of this dialect (semantics 2)");
}

Handler rs_control_handler(const Instruction& instruction, const Dialect& dialect) {
  const bool stacked = dialect.has(RsSwitch::Loops) || dialect.has(RsSwitch::Break);
  switch (instruction.op) {
    case Op::C_LOOP_START:
      return stacked ? loop_start : nullptr;
    case Op::C_LOOP_END:
      return stacked ? loop_end : nullptr;
    case Op::C_BREAK:
      return dialect.has(RsSwitch::Break) ? pop_loop : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace plena
