#include "plena/cli/machine_options.h"

#include "plena/machine/machine.h"

namespace plena {

namespace {

constexpr const char* kGroup = "Machine";

Result<Settings> read_settings(const MachineOptions& options, const Context& context) {
  if (options.settings_file.empty()) {
    if (options.mode.empty()) return Settings();
    return fail_with_hint(ErrorCode::Usage, "--mode picks a section of a settings file",
                          "add --settings FILE");
  }
  auto loaded = load_settings(options.settings_file, options.mode);
  if (!loaded) return forward_error(loaded);
  for (const auto& warning : loaded->warnings) warn(context, warning);
  return std::move(loaded->settings);
}

}  // namespace

void add_isa_option(CLI::App& command, MachineOptions& options) {
  command
      .add_option("--isa", options.isa,
                  "Instruction set: plena (default), plena+moe+bmv…, or the dialect plena-rs")
      ->type_name("SPEC")
      ->group(kGroup);
}

void add_machine_options(CLI::App& command, MachineOptions& options) {
  command
      .add_option("--settings", options.settings_file,
                  "A plena_settings.toml; without one, the specification's table")
      ->type_name("FILE")
      ->group(kGroup);
  command
      .add_option("--mode", options.mode,
                  "Section of the settings file (analytic, transactional); default: its active one")
      ->type_name("NAME")
      ->group(kGroup);
  command
      .add_option("--set", options.assignments,
                  "Override one setting, as in MLEN=128 or HBM_SIZE=16GiB; may repeat")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false)
      ->group(kGroup);
  add_isa_option(command, options);
}

Result<Settings> resolve_settings(const MachineOptions& options, const Context& context) {
  auto settings = read_settings(options, context);
  if (!settings) return settings;
  for (const auto& assignment : options.assignments) {
    if (auto set = set_value(*settings, assignment); !set) {
      set.error().message = "--set " + assignment + ": " + set.error().message;
      return tl::unexpected(std::move(set).error());
    }
  }
  // A wrong --isa is reported where it is used.
  if (const auto dialect = Dialect::parse(options.isa)) {
    *settings = settings_for(std::move(*settings), *dialect);
  }
  if (auto checked = check(*settings); !checked) {
    if (!options.settings_file.empty()) checked.error().place.file = options.settings_file;
    return tl::unexpected(std::move(checked).error());
  }
  return settings;
}

}  // namespace plena
