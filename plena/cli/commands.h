// One line a subcommand; each lives in a file of its own, NAME_command.cc.
#pragma once

#include "plena/cli/context.h"

namespace plena {

void add_asm_command(CLI::App& app, Context& context);
void add_compile_command(CLI::App& app, Context& context);
void add_disasm_command(CLI::App& app, Context& context);
void add_dram_command(CLI::App& app, Context& context);
void add_emulate_command(CLI::App& app, Context& context);
void add_eval_command(CLI::App& app, Context& context);
void add_fmt_command(CLI::App& app, Context& context);
void add_generate_command(CLI::App& app, Context& context);
void add_isa_command(CLI::App& app, Context& context);
void add_port_command(CLI::App& app, Context& context);
void add_run_command(CLI::App& app, Context& context);
void add_test_command(CLI::App& app, Context& context);

}  // namespace plena
