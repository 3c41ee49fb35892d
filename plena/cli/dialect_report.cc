#include "plena/cli/dialect_report.h"

#include "plena/asm/disassembler.h"

namespace plena {

void report_warnings(const DialectWarnings& warnings, const Program& program,
                     const Context& context) {
  for (const DialectWarning& warning : warnings.warnings()) {
    std::string place = fmt::format("pc {}", warning.pc);
    if (warning.pc < program.lines.size())
      place = fmt::format("{}:{}", program.source_name, program.lines[warning.pc]);
    warn(context, fmt::format("{}: warning: {}: {} ({}{})", place,
                              disassemble(program.words[warning.pc], Dialect::plena_rs()),
                              explain(warning.fault), rs_fault_name(warning.fault),
                              warning.count == 1 ? "" : fmt::format(", {} times", warning.count)));
  }
}

}  // namespace plena
