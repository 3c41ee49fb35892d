#include "plena/observe/run_log.h"

#include <algorithm>
#include <filesystem>
#include <span>

#include "plena/asm/disassembler.h"
#include "plena/numerics/float_format.h"
#include "plena/observe/memory_elements.h"

namespace plena {

RunLog::RunLog(const Program& program, std::FILE* out)
    : program_(program),
      source_(std::filesystem::path(program.source_name).filename().string()),
      out_(out),
      prefixes_(program.words.size()) {}

const std::string& RunLog::prefix(std::uint64_t pc, const Instruction& instruction) {
  std::string& text = prefixes_[pc];
  if (!text.empty()) return text;
  const std::string line = pc < program_.lines.size()
                               ? fmt::format("{}:{:<5} ", source_, program_.lines[pc])
                               : std::string();
  text = fmt::format("{:>6}  {}{:<36}", pc, line, disassemble(instruction));
  return text;
}

void RunLog::about_to_run(const Machine& /*machine*/, std::uint64_t /*pc*/,
                          const Instruction& /*instruction*/) {
  rows_.clear();
}

void RunLog::moved_row(const HbmRow& row) {
  rows_.push_back(row);
}

void RunLog::retired(const Machine& machine, std::uint64_t pc, const Instruction& instruction) {
  const std::string& start = prefix(pc, instruction);
  const std::string effect = effect_text(machine, instruction, rows_);
  std::fwrite(start.data(), 1, start.size(), out_);
  if (!effect.empty()) std::fwrite("  ", 1, 2, out_);
  std::fwrite(effect.data(), 1, effect.size(), out_);
  std::fputc('\n', out_);
}

Status RunLog::finish() {
  if (std::fflush(out_) == 0 && std::ferror(out_) == 0) return {};
  return fail(ErrorCode::Io, "the log could not be written completely");
}

}  // namespace plena
