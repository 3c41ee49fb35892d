// --warn-dialect, for the commands that run programs.
#pragma once

#include "plena/check/dialect_warnings.h"
#include "plena/cli/context.h"
#include "plena/isa/encoding.h"

namespace plena {

/// One line on stderr a warning: place, instruction, what it met and how often.
void report_warnings(const DialectWarnings& warnings, const Program& program,
                     const Context& context);

}  // namespace plena
