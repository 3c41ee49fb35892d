// The log of a run: one line an executed instruction, with what it wrote.
//
//     12  kernel.asm:34  V_ADD_VV gp1, gp2, gp3, 0         vram[64] = 1 2 3 4 ... (16 lanes)
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "plena/base/error.h"
#include "plena/isa/encoding.h"
#include "plena/sim/engine.h"

namespace plena {

/// Streams lines to `out` as the run goes. Registers, memory elements and accumulators are shown as
/// they are after the instruction: as bit patterns and numbers, the first lanes of each row.
class RunLog final : public Observer {
 public:
  /// `program` is the one that runs; `out` stays open until the log is gone.
  RunLog(const Program& program, std::FILE* out);

  void about_to_run(const Machine& machine, std::uint64_t pc,
                    const Instruction& instruction) override;
  void moved_row(const HbmRow& row) override;
  void retired(const Machine& machine, std::uint64_t pc, const Instruction& instruction) override;

  /// Sends on what is buffered; an error when any line could not be written.
  Status finish();

 private:
  const std::string& prefix(std::uint64_t pc, const Instruction& instruction);

  const Program& program_;
  std::string source_;  // file name of the program, without its folder
  std::FILE* out_;
  std::vector<std::string> prefixes_;  // by pc: everything before the effect, made at first use
  std::vector<HbmRow> rows_;           // of the instruction that is running
};

/// What an instruction that has just retired wrote, e.g. `gp1 = 0x00000005 (5)`; `rows` are the
/// transfers it made. Empty when it wrote nothing.
std::string effect_text(const Machine& machine, const Instruction& instruction,
                        const std::vector<HbmRow>& rows);

}  // namespace plena
