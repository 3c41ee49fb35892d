#include "plena/cli/command_line.h"

#include <memory>
#include <new>
#include <optional>
#include <vector>

#include "plena/base/near_miss.h"
#include "plena/cli/interrupt.h"
#include "plena/numerics/simd_target.h"

namespace plena {

namespace {

constexpr int kFine = 0;
constexpr int kUsage = 2;
constexpr int kInterrupted = 130;

// Help as people read it: the whole command in the usage line, no type of what has a name.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(26); }

  std::string make_usage(const CLI::App* app, std::string name) const override {
    const bool nested = app->get_parent() != nullptr;
    return CLI::Formatter::make_usage(app, nested ? "plena " + name : name);
  }

  // Without what a flag stands for when it is given no value (`--log{-}`).
  std::string make_option_name(const CLI::Option* option, bool positional) const override {
    const std::string name = CLI::Formatter::make_option_name(option, positional);
    return name.substr(0, name.find('{'));
  }

  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_positional() || option->get_type_size() == 0) return {};
    const std::string type = option->get_type_name();
    return " " + type.substr(0, type.find(':'));
  }
};

std::string lower_first(std::string text) {
  // CLI11's sentences start upper case; names of options and files keep theirs.
  const bool sentence = text.size() > 1 && text[1] >= 'a' && text[1] <= 'z';
  if (sentence && text[0] >= 'A' && text[0] <= 'Z') text[0] = static_cast<char>(text[0] + 32);
  return text;
}

// The subcommand that was named, or the program itself.
const CLI::App& chosen(const CLI::App& app) {
  const auto commands = app.get_subcommands();
  return commands.empty() ? app : *commands.front();
}

std::string command_name(const CLI::App& app) {
  const CLI::App& command = chosen(app);
  return &command == &app ? std::string("plena") : "plena " + command.get_name();
}

Error unknown_command(const CLI::App& app, const std::string& name) {
  std::vector<std::string> owned;
  for (const CLI::App* command : app.get_subcommands({})) owned.push_back(command->get_name());
  std::vector<std::string_view> names(owned.begin(), owned.end());
  std::string hint = did_you_mean(name, names);
  if (hint.empty()) hint = "plena --help lists the commands";
  return {ErrorCode::Usage, fmt::format("unknown command '{}'", name), {}, std::move(hint)};
}

Error unknown_argument(const CLI::App& app, const std::string& argument) {
  const std::string help = command_name(app) + " --help lists the options";
  if (!argument.starts_with('-')) {
    return {ErrorCode::Usage, fmt::format("one argument too many: '{}'", argument), {}, help};
  }
  const std::string name = argument.substr(0, argument.find('='));
  std::vector<std::string> owned;
  for (const CLI::Option* option : chosen(app).get_options()) {
    for (const auto& long_name : option->get_lnames()) owned.push_back("--" + long_name);
  }
  std::vector<std::string_view> names(owned.begin(), owned.end());
  std::string hint = did_you_mean(name, names);
  if (hint.empty()) hint = help;
  return {ErrorCode::Usage, fmt::format("unknown option '{}'", name), {}, std::move(hint)};
}

Error usage_error(const CLI::App& app, const CLI::ParseError& parse_error) {
  // Whatever else is wrong with the line, a mistyped option is the likely cause of it.
  for (const auto& argument : app.remaining(true)) {
    if (argument == "--") continue;
    const bool command = app.get_subcommands().empty() && !argument.starts_with('-');
    return command ? unknown_command(app, argument) : unknown_argument(app, argument);
  }
  return {ErrorCode::Usage, lower_first(parse_error.what()), {}, command_name(app) + " --help"};
}

// The exit status a parse ended with, or nothing when there is work to do.
std::optional<int> parse(CLI::App& app, const Context& context, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    if (!app.get_subcommands().empty()) return std::nullopt;
    print(app.help());
    return kUsage;
  } catch (const CLI::CallForHelp&) {
    print(chosen(app).help());
    return kFine;
  } catch (const CLI::CallForVersion& version) {
    print("{}\n", version.what());
    return kFine;
  } catch (const CLI::ParseError& error) {
    report(context, usage_error(app, error));
    return kUsage;
  }
}

int run_body(const Context& context) {
  try {
    auto status = check_simd_environment().and_then(context.body);
    if (status) return *status;
    if (output_closed()) return kFine;
    report(context, status.error());
    return exit_status(status.error().code);
  } catch (const std::bad_alloc&) {
    report(context, {ErrorCode::Io, "out of memory", {}, {}});
    return kUsage;
  }
}

}  // namespace

int run_command_line(CLI::App& app, Context& context, int argc, char** argv) {
  catch_signals();
  app.formatter(std::make_shared<HelpFormatter>());
  add_output_options(app, context);
  for (CLI::App* command : app.get_subcommands({})) {
    command->formatter(app.get_formatter());
    add_output_options(*command, context);
  }
  app.require_subcommand(0, 1);
  int status = kFine;
  if (const auto parsed = parse(app, context, argc, argv)) {
    status = *parsed;
  } else {
    status = run_body(context);
  }
  flush();
  if (output_closed()) return kFine;  // `plena … | head` got what it asked for
  if (const auto written = output_status(); !written) {
    report(context, written.error());
    return exit_status(written.error().code);
  }
  // A file that could not be written stops a run in the same way, and is why.
  return interrupted() && status != kUsage ? kInterrupted : status;
}

}  // namespace plena
