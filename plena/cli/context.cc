#include "plena/cli/context.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <unistd.h>

#include "plena/cli/interrupt.h"

namespace plena {

namespace {

int output_errno = 0;  // of the first write to stdout that failed

void note_output_failure() {
  if (output_errno == 0) output_errno = errno != 0 ? errno : EIO;
  if (output_errno == EPIPE) request_stop();
}

}  // namespace

bool Context::colored(int descriptor) const {
  if (color != "auto") return color == "always";
  return std::getenv("NO_COLOR") == nullptr && ::isatty(descriptor) == 1;
}

bool Context::shows_progress() const {
  return !quiet && ::isatty(STDERR_FILENO) == 1;
}

void add_output_options(CLI::App& app, Context& context) {
  constexpr const char* kGroup = "Output";
  app.add_flag("--json", context.json, "Reports in machine-readable form")->group(kGroup);
  app.add_flag("-q,--quiet", context.quiet, "No warnings, no progress")->group(kGroup);
  app.add_flag("-v,--verbose", context.verbose, "More of what is going on")->group(kGroup);
  app.add_option("--color", context.color, "auto, always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->type_name("WHEN")
      ->group(kGroup);
  app.set_version_flag("--version", "plena " PLENA_VERSION, "Version")->group(kGroup);
  app.get_help_ptr()->description("This text");
}

void print(std::string_view text) {
  if (output_errno != 0) return;
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) note_output_failure();
}

void flush() {
  if (output_errno != 0) return;
  errno = 0;
  if (std::fflush(stdout) != 0) note_output_failure();
}

Status output_status() {
  if (output_errno == 0 || output_closed()) return {};
  return fail(ErrorCode::Io, "cannot write to standard output: {}", std::strerror(output_errno));
}

bool output_closed() {
  return output_errno == EPIPE;
}

void report(const Context& context, const Error& error) {
  const std::string text = error.render(context.colored(STDERR_FILENO)) + "\n";
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void warn(const Context& context, std::string_view warning) {
  if (context.quiet) return;
  const std::string text = std::string(warning) + "\n";
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace plena
