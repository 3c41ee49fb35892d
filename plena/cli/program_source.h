// The PROGRAM argument of a command: assembly text, a .mem file or a compiled image folder.
#pragma once

#include <optional>
#include <string>

#include "plena/base/error.h"
#include "plena/cli/context.h"
#include "plena/cli/machine_options.h"
#include "plena/compiler/image.h"
#include "plena/isa/encoding.h"

namespace plena {

/// A program and the machine it is for.
struct ProgramSource {
  Program program;
  Settings settings;
  Dialect dialect;
  std::optional<Image> image;  // initial memories, of an image folder

  /// The machine at reset, with the initial memories.
  [[nodiscard]] Result<Machine> make_machine() const;
};

/// Reads the words of a .mem file or an image folder, whose machine is its own; any other file is
/// assembled for the machine the options name. Of several errors in assembly text all but the last
/// are reported at once, the last is returned.
Result<ProgramSource> read_program_source(const std::string& path, const MachineOptions& options,
                                          const Context& context);

/// Adds the text of its line, underlined, to an error that names a line of a file; none where the
/// file cannot be read again.
void show_source_line(Error& error);

}  // namespace plena
