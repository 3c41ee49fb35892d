// The program `plena`: a thin caller of the library, one file a subcommand.
#include "plena/cli/command_line.h"
#include "plena/cli/commands.h"

int main(int argc, char** argv) {
  CLI::App app("plena: the toolchain of the PLENA transformer accelerator", "plena");
  plena::Context context;

  plena::add_asm_command(app, context);
  plena::add_compile_command(app, context);
  plena::add_disasm_command(app, context);
  plena::add_dram_command(app, context);
  plena::add_emulate_command(app, context);
  plena::add_eval_command(app, context);
  plena::add_fmt_command(app, context);
  plena::add_generate_command(app, context);
  plena::add_isa_command(app, context);
  plena::add_port_command(app, context);
  plena::add_run_command(app, context);
  plena::add_test_command(app, context);

  return plena::run_command_line(app, context, argc, argv);
}
