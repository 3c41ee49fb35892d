// Dispatch loops with a clock inside, one for each issue model: nothing virtual between an
// instruction and its cycle.
#include "plena/sim/dispatch.h"
#include "plena/timing/dataflow_issue.h"
#include "plena/timing/pipelined_issue.h"
#include "plena/timing/serial_issue.h"
#include "plena/timing/timing.h"

namespace plena {

namespace {

// Any model, by its retire().
template <class Model>
class ClockWatch {
 public:
  static constexpr bool kActive = true;
  static constexpr bool kTakesPairs = false;

  ClockWatch(Model& model, const Machine& machine) : model_(model), machine_(machine) {}

  std::optional<Stop> before(std::uint64_t /*pc*/) { return std::nullopt; }
  void before_call(std::uint64_t /*pc*/, const Prepared& i) {
    // S_LD_INT may overwrite the register it takes its address from.
    rs1_before_ = machine_.gp[i.rs1];
  }
  void after(std::uint64_t pc) {
    model_.retire(machine_, static_cast<std::uint32_t>(pc), rs1_before_);
  }
  void after_integer(std::uint64_t pc) { after(pc); }
  void after_special(std::uint64_t pc) { after(pc); }
  void after_nothing(std::uint64_t pc) { after(pc); }
  void after_loop_start(std::uint64_t pc) { after(pc); }
  void after_loop_end(std::uint64_t pc) { after(pc); }
  void passed(std::uint64_t /*first*/, std::uint64_t /*last*/) {}
  void finish() {}

 private:
  Model& model_;
  const Machine& machine_;
  std::uint32_t rs1_before_ = 0;
};

// The pipelined model with its front in registers and the cheap instructions inside the loop: all
// of it is inlined, since a call would put the front into memory.
template <bool kListened, bool kIntegerUnitFree>
class PipelinedWatch {
 public:
  static constexpr bool kActive = true;
  static constexpr bool kTakesPairs = true;

  PipelinedWatch(PipelinedIssue& model, const Machine& machine)
      : model_(model), machine_(machine), front_(model.front()) {}

  std::optional<Stop> before(std::uint64_t /*pc*/) { return std::nullopt; }
  void before_call(std::uint64_t /*pc*/, const Prepared& i) { rs1_before_ = machine_.gp[i.rs1]; }
  [[gnu::always_inline]] void after(std::uint64_t pc) {
    model_.front() = front_;
    model_.place_in_time(machine_, static_cast<std::uint32_t>(pc), rs1_before_);
    front_ = model_.front();
  }
  [[gnu::always_inline]] void after_integer(std::uint64_t pc) {
    if constexpr (kIntegerUnitFree) {
      model_.retire_integer(front_, pc);
    } else {
      after_nothing(pc);
    }
  }
  [[gnu::always_inline]] void after_nothing(std::uint64_t pc) {
    model_.retire_registers<kListened>(front_, pc);
  }
  [[gnu::always_inline]] void after_special(std::uint64_t pc) {
    model_.retire_special<kListened>(front_, pc);
  }
  [[gnu::always_inline]] void after_loop_start(std::uint64_t pc) {
    model_.retire_loop_start<kListened>(front_, pc);
  }
  [[gnu::always_inline]] void after_loop_end(std::uint64_t pc) {
    model_.retire_loop_end<kListened>(front_, pc);
  }
  [[gnu::always_inline]] void passed(std::uint64_t first, std::uint64_t last) {
    model_.count_passage(first, last);
  }
  [[gnu::always_inline]] void finish() { model_.front() = front_; }

 private:
  PipelinedIssue& model_;
  const Machine& machine_;
  PipelinedIssue::Front front_;
  std::uint32_t rs1_before_ = 0;
};

}  // namespace

Stop run_timed(Observer& observer, Machine& machine, const PreparedProgram& program,
               const RunOptions& options) {
  // The clock asks for registers and settings only: no memory has to be shown to it, no row told.
  RunOptions unseen = options;
  unseen.observer = nullptr;
  Execution x(machine, program, unseen);
  IssueModel& model = static_cast<Timing&>(observer).issue_model();
  if (auto* pipelined = dynamic_cast<PipelinedIssue*>(&model)) {
    if (pipelined->listened())
      return dispatch(x, options, PipelinedWatch<true, false>(*pipelined, machine));
    return pipelined->integer_unit_is_free()
               ? dispatch(x, options, PipelinedWatch<false, true>(*pipelined, machine))
               : dispatch(x, options, PipelinedWatch<false, false>(*pipelined, machine));
  }
  if (auto* serial = dynamic_cast<SerialIssue*>(&model))
    return dispatch(x, options, ClockWatch<SerialIssue>(*serial, machine));
  auto& dataflow = static_cast<DataflowIssue&>(model);
  return dispatch(x, options, ClockWatch<DataflowIssue>(dataflow, machine));
}

}  // namespace plena
