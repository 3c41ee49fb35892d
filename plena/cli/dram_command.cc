// plena dram CASES.json [CASE…]: request streams on the memory controller alone.
#include <algorithm>
#include <memory>
#include <optional>

#include <nlohmann/json.hpp>

#include "plena/base/near_miss.h"
#include "plena/cli/commands.h"
#include "plena/cli/interrupt.h"
#include "plena/cli/number_checks.h"
#include "plena/dram/stream_report.h"

namespace plena {

namespace {

struct DramOptions {
  std::string file;
  std::vector<std::string> names;
  std::string policy = "open";
  double tolerance = 0.5;
};

struct StreamTally {
  std::size_t passed = 0;
  std::size_t failed = 0;
  nlohmann::ordered_json reports = nlohmann::ordered_json::array();
};

// The named ones of all cases, in the order of the names; all without names.
Result<std::vector<dram::StreamCase>> choose(std::vector<dram::StreamCase> cases,
                                             const std::vector<std::string>& names) {
  if (names.empty()) return cases;
  std::vector<dram::StreamCase> chosen;
  for (const std::string& name : names) {
    const auto found = std::ranges::find(cases, name, &dram::StreamCase::id);
    if (found == cases.end()) {
      std::vector<std::string_view> known;
      known.reserve(cases.size());
      for (const auto& one : cases) known.push_back(one.id);
      return fail_with_hint(ErrorCode::Usage, fmt::format("there is no case '{}'", name),
                            did_you_mean(name, known));
    }
    chosen.push_back(*found);
  }
  return chosen;
}

Status run_case(const dram::StreamCase& stream, const DramOptions& options, const Context& context,
                StreamTally& tally) {
  auto policy = dram::stream_policy(stream, options.policy);
  if (!policy) return tl::unexpected<Error>(policy.error());
  auto result = dram::run_stream(stream, *policy, {.interrupted = &interrupted()});
  if (!result) return tl::unexpected<Error>(result.error());
  std::optional<dram::StreamComparison> comparison;
  if (stream.expected) {
    comparison =
        dram::compare(*result, *stream.expected, options.policy == "reference", options.tolerance);
    ++(comparison->passed ? tally.passed : tally.failed);
  }
  if (context.json) {
    tally.reports.push_back(dram::json_report(stream, *result, comparison));
  } else {
    print(dram::text_report(stream, *result, comparison));
  }
  return {};
}

Result<int> run_streams(const DramOptions& options, const Context& context) {
  auto loaded = dram::load_stream_cases(options.file);
  if (!loaded) return forward_error(loaded);
  auto cases = choose(std::move(*loaded), options.names);
  if (!cases) return forward_error(cases);
  StreamTally tally;
  for (const dram::StreamCase& stream : *cases) {
    if (auto ran = run_case(stream, options, context, tally); !ran)
      return tl::unexpected<Error>(ran.error());
  }
  if (context.json) {
    const nlohmann::ordered_json report = {{"policy", options.policy},
                                           {"tolerance_percent", options.tolerance},
                                           {"cases", tally.reports},
                                           {"passed", tally.passed},
                                           {"failed", tally.failed}};
    print("{}\n", report.dump(2));
  } else {
    print("{} passed, {} failed\n", tally.passed, tally.failed);
  }
  return tally.failed != 0 ? 1 : 0;
}

}  // namespace

void add_dram_command(CLI::App& app, Context& context) {
  auto options = std::make_shared<DramOptions>();
  CLI::App* command =
      app.add_subcommand("dram", "Run request streams on the memory controller alone");
  command->add_option("CASES.json", options->file, "Request streams (docs/hbm.md)")->required();
  command->add_option("CASE", options->names, "Only these cases, by name");
  command->add_option("--case", options->names, "The same");
  command->add_option("--policy", options->policy, "How the controller schedules")
      ->check(CLI::IsMember({"reference", "open"}))
      ->capture_default_str();
  command
      ->add_option("--tolerance", options->tolerance,
                   "How far, in percent, total cycles and mean read latency may be off")
      ->check(check_number_from_zero)
      ->capture_default_str();
  command->footer(
      "Cases that carry a result are compared with it: policy reference must meet it, policy open\n"
      "may be faster. Closes with `N passed, N failed`; exit status 1 when any failed.");
  command->callback([&context, options] {
    context.body = [&context, options] { return run_streams(*options, context); };
  });
}

}  // namespace plena
