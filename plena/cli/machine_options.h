// The options that say which machine is meant: --settings --mode --set --isa (cli.md).
#pragma once

#include <string>
#include <vector>

#include "plena/cli/context.h"
#include "plena/config/settings.h"
#include "plena/isa/dialect.h"

namespace plena {

struct MachineOptions {
  std::string settings_file;
  std::string mode;
  std::vector<std::string> assignments;  // KEY=VALUE each
  std::string isa = "plena";

  /// Whether the user asked for any machine; an image has one of its own.
  [[nodiscard]] bool named() const {
    return !settings_file.empty() || !mode.empty() || !assignments.empty() || isa != "plena";
  }
};

void add_machine_options(CLI::App& command, MachineOptions& options);
/// Only --isa, for commands that need no sizes.
void add_isa_option(CLI::App& command, MachineOptions& options);

/// The settings file, or the built-in default, with every --set applied, check()ed. Warnings of
/// the file go to stderr.
Result<Settings> resolve_settings(const MachineOptions& options, const Context& context);

}  // namespace plena
