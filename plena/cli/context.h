// What every subcommand shares: the options that hold everywhere, results to stdout, everything
// else to stderr.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "plena/base/error.h"

namespace plena {

struct Context {
  bool json = false;     // reports in machine-readable form
  bool quiet = false;    // no warnings, no progress
  bool verbose = false;  // more of what is going on
  std::string color = "auto";

  /// What the subcommand that was named does; its callback puts it here:
  ///
  ///     CLI::App* command = app.add_subcommand("asm", "Assemble a program");
  ///     command->add_option("FILE", options->file, "Assembly text")->required();
  ///     command->callback([&context, options] {
  ///       context.body = [&context, options] { return assemble_file(*options, context); };
  ///     });
  ///
  /// An Error is rendered and decides the exit status; otherwise the number is the exit status.
  std::function<Result<int>()> body;

  /// Whether text for this stream (1 stdout, 2 stderr) is coloured.
  [[nodiscard]] bool colored(int descriptor) const;
  /// Whether progress lines are wanted: a terminal on stderr, and not --quiet.
  [[nodiscard]] bool shows_progress() const;
};

/// Adds --json --quiet --verbose --color --version to the program or a subcommand;
/// run_command_line() does so for every subcommand.
void add_output_options(CLI::App& app, Context& context);

/// Writes a result to stdout. When the reader has gone away the rest is dropped and interrupted()
/// becomes true; any other failure is reported when the program ends.
void print(std::string_view text);

template <class... Args>
  requires(sizeof...(Args) > 0)
void print(fmt::format_string<Args...> format, Args&&... args) {
  print(std::string_view(fmt::format(format, std::forward<Args>(args)...)));
}

/// Sends on what print() has gathered; needed where output streams.
void flush();

/// What became of stdout: fine, closed by its reader, or an error worth an exit status.
Status output_status();
bool output_closed();

/// Renders to stderr.
void report(const Context& context, const Error& error);
/// A warning that names its own place (`file:line: warning: …`); silent under --quiet.
void warn(const Context& context, std::string_view warning);

}  // namespace plena
