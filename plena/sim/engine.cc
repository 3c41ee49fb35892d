// Runs: the dispatch loop compiled twice, for nobody and for what counts instructions, keeps loop
// frames or tells an observer.
#include "plena/sim/engine.h"

#include "plena/sim/dispatch.h"
#include "plena/sim/observer_watch.h"

namespace plena {

void Observer::about_to_run(const Machine& /*machine*/, std::uint64_t /*pc*/,
                            const Instruction& /*instruction*/) {}
void Observer::moved_row(const HbmRow& /*row*/) {}

Stop run(Machine& machine, const PreparedProgram& program, const RunOptions& options) {
  if (machine.pc >= program.code.size()) machine.pc = program.code.size() - 1;
  if (options.observer != nullptr && options.max_instructions == 0 && !program.counts_loops) {
    if (const Observer::Loop loop = options.observer->own_loop())
      return loop(*options.observer, machine, program, options);
  }
  Execution x(machine, program, options);
  if (options.observer != nullptr || options.max_instructions != 0 || program.counts_loops) {
    return dispatch(x, options, ObserverWatch<Observer>(x, options, options.observer));
  }
  return dispatch(x, options, NoWatch());
}

void resume_after_break(Machine& machine, const PreparedProgram& program) {
  if (machine.pc >= program.decoded.size() || program.code[machine.pc].code != Code::Break) return;
  // Under rs-loops it was counted when it was dispatched.
  const bool counts = program.counts_loops && !program.dialect.has(RsSwitch::Loops);
  if (counts && !machine.loops.empty()) ++machine.loops.back().instructions;
  ++machine.pc;
  ++machine.retired;
}

}  // namespace plena
