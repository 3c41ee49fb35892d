#include "plena/asm/program_file.h"

#include "plena/asm/mem_file.h"

namespace plena {

Result<Program> read_program(const std::string& path, const AssemblyOptions& options) {
  if (path.ends_with(".mem")) {
    auto words = read_mem_file(path);
    if (!words) return forward_error(words);
    Program program;
    program.words = *std::move(words);
    return program;
  }
  auto assembly = assemble_file(path, options);
  if (!assembly) return forward_error(assembly);
  if (!assembly->ok()) return tl::unexpected(first_error(*assembly));
  return std::move(assembly->program);
}

}  // namespace plena
