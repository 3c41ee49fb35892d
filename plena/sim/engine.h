// The functional engine: prepares a program for one machine's settings and runs it, bit-exactly.
//
// Nothing here knows about time; an Observer may watch, and a run without one pays nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <tl/expected.hpp>

#include "plena/isa/encoding.h"
#include "plena/machine/machine.h"
#include "plena/numerics/simd_target.h"
#include "plena/sim/trap.h"

namespace plena {

class PreparedProgram;
class TileCache;
class Workers;
struct RunOptions;
struct Stop;

/// Decodes and validates a whole program and pairs its loops (semantics 2): an illegal word or a
/// loop fault is reported here, with that word's index, and nothing has run. `simd`: the kernels of
/// its runs; the results are the same with any.
tl::expected<std::shared_ptr<const PreparedProgram>, Trap> prepare(
    const std::vector<std::uint32_t>& words, const Settings& settings, const Dialect& dialect,
    SimdTarget simd = simd_target());

/// One row of an H-type transfer: the bytes of HBM that its elements and its scales lie in.
struct HbmRow {
  bool write = false;
  std::uint64_t element_address = 0;
  std::uint64_t element_bytes = 0;
  std::uint64_t scale_address = 0;
  std::uint64_t scale_bytes = 0;  // 0 for a plain type
};

/// Sees every instruction of a run twice: before it executes, when its address registers still hold
/// their old values, and after it retired. `machine.pc` is only up to date between runs; `pc` names
/// the instruction. One that traps is announced but never retires.
class Observer {
 public:
  /// A dispatch loop (dispatch.h) that was compiled with the observer inside. It takes the place of
  /// the engine's where nothing else watches a run.
  using Loop = Stop (*)(Observer& observer, Machine& machine, const PreparedProgram& program,
                        const RunOptions& options);

  virtual ~Observer() = default;
  virtual void about_to_run(const Machine& machine, std::uint64_t pc,
                            const Instruction& instruction);
  virtual void retired(const Machine& machine, std::uint64_t pc,
                       const Instruction& instruction) = 0;
  /// Called between the two, for each row an H-type instruction moved, in order.
  virtual void moved_row(const HbmRow& row);

  /// Null: the engine's own loop calls the functions above.
  [[nodiscard]] virtual Loop own_loop() const { return nullptr; }
};

struct RunOptions {
  std::uint64_t max_instructions = 0;  // 0: no limit; one more is a trap
  Observer* observer = nullptr;
  const std::atomic<bool>* interrupted = nullptr;  // set by a signal handler: stop soon
  /// Goes through pairs of instructions in one step where nobody watches; the results are the same
  /// without.
  bool fuse = true;
  /// Tiles that stay decoded from one prefetch, and one run, to the next (tile_cache.h). The
  /// results are the same without: then every prefetch decodes its bytes.
  TileCache* tile_cache = nullptr;
  /// Threads for products that are large enough (workers.h); null: none but the caller's.
  Workers* workers = nullptr;
};

enum class StopReason : std::uint8_t {
  Halted,       // ran past the last instruction
  Trapped,      // trap says why; all state is as it was before the instruction
  Interrupted,  // can go on with another run()
};

struct Stop {
  StopReason reason = StopReason::Halted;
  std::optional<Trap> trap;
};

/// Runs from machine.pc until the program ends, traps or is interrupted. The machine must have the
/// settings and dialect the program was prepared for.
Stop run(Machine& machine, const PreparedProgram& program, const RunOptions& options = {});

/// Steps over the C_BREAK that stopped a run: it retires now (semantics 6.12).
void resume_after_break(Machine& machine, const PreparedProgram& program);

/// The decoded instructions, in program order.
const std::vector<Instruction>& instructions(const PreparedProgram& program);

}  // namespace plena
