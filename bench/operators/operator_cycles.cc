// Cycles of single operators, compiled as a model's are, under the profile `pipelined`.
//
//     plena_operator_cycles CASES.json
//
// CASES.json is an array of objects: `name`, `settings` (a plena_settings.toml, its section
// `mode`), `operator` (linear, feed_forward, attention, rms_norm, layer_norm), `rows`, and what the
// operator takes of `inputs`, `outputs`, `hidden`, `bias`, `gain`, `heads`, `kv_heads`, `head_dim`.
// Prints an array: `name`, `cycles` from the first instruction to the last result, `error`, the
// largest difference from f32 arithmetic as a share of the largest result, and `regions`, the
// cycles of the parts.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>

#include <nlohmann/json.hpp>

#include "operator_graph.h"
#include "plena/base/files.h"
#include "plena/compiler/compile.h"
#include "plena/runtime/session.h"
#include "plena/timing/hbm_choice.h"
#include "plena/timing/profile.h"
#include "plena/timing/report.h"

namespace plena::bench {
namespace {

using Json = nlohmann::ordered_json;

OperatorShape read_shape(const Json& json) {
  static const std::map<std::string, OperatorKind> kKinds{
      {"linear", OperatorKind::Linear},
      {"feed_forward", OperatorKind::FeedForward},
      {"attention", OperatorKind::Attention},
      {"rms_norm", OperatorKind::RmsNorm},
      {"layer_norm", OperatorKind::LayerNorm}};
  const auto number = [&](const char* key) { return json.value(key, 0U); };
  return {.kind = kKinds.at(json.at("operator").get<std::string>()),
          .rows = number("rows"),
          .inputs = number("inputs"),
          .outputs = number("outputs"),
          .hidden = number("hidden"),
          .bias = json.value("bias", false),
          .gain = json.value("gain", false),
          .heads = {number("heads"), number("kv_heads"), number("head_dim")}};
}

double worst_error(std::span<const float> found, std::size_t stride, const OperatorGraph& wanted) {
  double worst = 0;
  double largest = 0;
  const std::vector<float>& expected = wanted.expected();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const float value = found[i / wanted.width() * stride + i % wanted.width()];
    worst = std::max(worst, std::abs(double{value} - double{expected[i]}));
    largest = std::max(largest, std::abs(double{expected[i]}));
  }
  return worst / largest;
}

Result<Json> run_case(const Json& json) {
  auto loaded = load_settings(json.at("settings").get<std::string>(), json.value("mode", ""));
  if (!loaded) return forward_error(loaded);
  const OperatorShape shape = read_shape(json);
  const OperatorGraph wanted(shape, loaded->settings);
  auto image = compile(wanted.graph(), {.settings = loaded->settings, .block = shape.rows});
  if (!image) return forward_error(image);
  auto session = Session::create(*image);
  if (!session) return forward_error(session);
  auto profile = load_profile("pipelined");
  if (!profile) return forward_error(profile);
  auto hbm = make_hbm(*profile);
  if (!hbm) return forward_error(hbm);
  const Machine& machine = session->machine();
  auto clock = Timing::create(*profile, std::move(*hbm), session->instructions(), machine.settings,
                              machine.dialect);
  if (!clock) return forward_error(clock);
  session->set_clock(clock->get());
  std::vector<std::uint32_t> tokens(shape.rows);
  std::iota(tokens.begin(), tokens.end(), 0U);
  auto found = session->run_block(tokens, 0);
  if (!found) return forward_error(found);
  Json regions;
  const TimingReport report =
      make_report(**clock, machine.settings, machine.dialect, session->program().regions);
  for (const auto& region : report.regions) {
    if (region.instructions != 0) regions[region.region.name] = region.causes.total();
  }
  return Json{{"name", json.at("name")},
              {"cycles", session->step_ends().back().cycles},
              {"error", worst_error(*found, wanted.graph().vocab, wanted)},
              {"regions", regions}};
}

int run(const char* path) {
  const auto text = read_text(path);
  const auto cases = text ? Json::parse(*text, nullptr, false) : Json();
  Json results = Json::array();
  for (const Json& json : cases) {
    auto result = run_case(json);
    results.push_back(
        result ? *result : Json{{"name", json.at("name")}, {"failure", result.error().render()}});
  }
  std::puts(results.dump(2).c_str());
  return 0;
}

}  // namespace
}  // namespace plena::bench

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: plena_operator_cycles CASES.json\n", stderr);
    return 2;
  }
  return plena::bench::run(argv[1]);
}
