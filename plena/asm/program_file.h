// A program from a file, whichever of the two forms it has.
#pragma once

#include <string>

#include "plena/asm/assembler.h"

namespace plena {

/// `.mem` files are read, every other file is assembled. The first error of assembly text, with
/// the number of others, is the error.
Result<Program> read_program(const std::string& path, const AssemblyOptions& options);

}  // namespace plena
