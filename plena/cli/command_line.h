// From argv to an exit status: parsing, usage errors with suggestions, running, closing down.
#pragma once

#include "plena/cli/context.h"

namespace plena {

/// Parses the arguments, runs the subcommand they name and reports what went wrong. The exit
/// status is that of cli.md: 0 fine, 1 what was asked about failed, 2 usage or unreadable input,
/// 130 after Ctrl-C.
int run_command_line(CLI::App& app, Context& context, int argc, char** argv);

}  // namespace plena
