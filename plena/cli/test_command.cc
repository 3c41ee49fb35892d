// plena test CASE…: runs case folders and conformance bundles, compares everything.
#include <memory>

#include <nlohmann/json.hpp>

#include "plena/cases/collect.h"
#include "plena/cli/commands.h"
#include "plena/cli/interrupt.h"

namespace plena {

namespace {

struct Tally {
  std::size_t passed = 0;
  std::size_t failed = 0;
  bool unreadable = false;  // a case that is no valid input
  nlohmann::ordered_json failures = nlohmann::ordered_json::array();
};

void note(const std::string& folder, const std::vector<std::string>& lines, const Context& context,
          Tally& tally) {
  if (lines.empty()) {
    ++tally.passed;
    if (context.verbose && !context.json) print("ok   {}\n", folder);
    return;
  }
  ++tally.failed;
  if (context.json) {
    tally.failures.push_back({{"case", folder}, {"differences", lines}});
    return;
  }
  print("FAIL {}\n", folder);
  for (const std::string& line : lines) print("     {}\n", line);
}

Result<int> run_cases(const std::vector<std::string>& paths, const Context& context) {
  auto folders = collect_cases(paths);
  if (!folders) return forward_error(folders);
  Tally tally;
  for (const std::string& folder : *folders) {
    if (interrupted())
      return fail(ErrorCode::Interrupted, "interrupted after {} cases",
                  tally.passed + tally.failed);
    auto lines = run_case_folder(folder);
    if (!lines) tally.unreadable = true;
    note(folder, lines ? *lines : std::vector{lines.error().render()}, context, tally);
  }
  if (context.json) {
    const nlohmann::ordered_json report = {
        {"passed", tally.passed}, {"failed", tally.failed}, {"failures", tally.failures}};
    print("{}\n", report.dump(2));
  } else {
    print("{} passed, {} failed\n", tally.passed, tally.failed);
  }
  return tally.unreadable ? 2 : tally.failed != 0 ? 1 : 0;
}

}  // namespace

void add_test_command(CLI::App& app, Context& context) {
  auto paths = std::make_shared<std::vector<std::string>>();
  CLI::App* command = app.add_subcommand(
      "test", "Run case folders and conformance bundles and compare every memory");
  command->add_option("CASE", *paths, "A case or bundle folder, or a folder of them")->required();
  command->footer(
      "Prints what differs, closes with `N passed, N failed`; exit status 1 when anything failed.\n"
      "--verbose names the cases that pass as well.");
  command->callback([&context, paths] {
    context.body = [&context, paths] { return run_cases(*paths, context); };
  });
}

}  // namespace plena
