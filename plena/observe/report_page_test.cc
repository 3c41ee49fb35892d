// The report: sums that are those of the timing report, text that cannot break out of its place,
// and a page that does in a browser what it promises.
#include "plena/observe/report_page.h"

#include <numeric>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "plena/asm/assembler.h"
#include "plena/observe/testing/browser.h"
#include "plena/timing/hbm_choice.h"

namespace plena {
namespace {

using Json = nlohmann::ordered_json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Lines count from 1; the loop stands on lines 7 to 13.
constexpr const char* kProgram =
    ".region set_up\n"
    "S_ADDI_INT      gp2, gp0, 65536 ; of </script><script>errors.push('broke out')</script>\n"
    "C_SET_ADDR_REG  a1, gp0, gp0\n"
    "C_SET_SCALE_REG gp2\n"
    ".endregion\n"
    ".region layer.0\n"
    "C_LOOP_START    gp1, 20\n"
    "; a tile in, a tile through the array\n"
    "H_PREFETCH_M    gp0, gp3, a1, 0, 0\n"
    "M_MM            0, gp0, gp0\n"
    "M_MM_WO         gp0, 0, 0\n"
    "\n"
    "C_LOOP_END      gp1\n"
    ".endregion\n";

struct Reported {
  TimingReport report;
  Json json;
  std::string page;
};

Reported reported(std::string_view text, const std::string& memory = "hbm2-2000",
                  const std::string& profile_name = "pipelined") {
  const Settings settings;
  const Assembly assembly = assemble(text, {.source_name = "tiles.asm"});
  EXPECT_TRUE(assembly.ok()) << first_error(assembly).render();
  auto profile = load_profile(profile_name);
  EXPECT_TRUE(choose_hbm_preset(*profile, memory));
  const auto prepared = prepare(assembly.program.words, settings, {});
  auto clock = Timing::create(*profile, std::move(*make_hbm(*profile)), instructions(**prepared),
                              settings, {});
  TimelineBins bins(**clock, assembly.program);
  (*clock)->set_listener(&bins);
  auto machine = Machine::create(settings);
  run(*machine, **prepared, {.observer = clock->get()});
  EXPECT_TRUE((*clock)->drain());
  (*clock)->set_listener(nullptr);
  Reported result{.report = make_report(**clock, settings, {}, assembly.program.regions)};
  const ReportInput input{.title = "tiles.asm",
                          .source = std::string(text),
                          .program = assembly.program,
                          .timing = **clock,
                          .report = result.report,
                          .timeline = bins,
                          .settings = settings,
                          .dialect = {}};
  result.json = report_json(input);
  result.page = report_page(input);
  return result;
}

std::uint64_t sum(const Json& numbers) {
  return std::accumulate(
      numbers.begin(), numbers.end(), std::uint64_t{0},
      [](std::uint64_t all, const Json& n) { return all + n.get<std::uint64_t>(); });
}

TEST(ReportJson, CyclesOfAllInstructionsAreTheTotal) {
  const Reported run = reported(kProgram);
  std::uint64_t all = 0;
  for (const Json& instruction : run.json["instructions"]) all += sum(instruction["causes"]);
  EXPECT_EQ(all, run.report.total);
  EXPECT_EQ(sum(run.json["program"]["causes"]), run.report.total);
}

TEST(ReportJson, TheTimelineSumsToTheAccounts) {
  for (const char* memory : {"ideal", "hbm2-2000"}) {
    const Reported run = reported(kProgram, memory);
    const Json& timeline = run.json["timeline"];
    EXPECT_EQ(sum(timeline["waiting"][static_cast<std::size_t>(Cause::Register)]),
              run.report.causes[Cause::Register]);
    for (std::size_t u = 0; u < kUnitCount; ++u)
      EXPECT_EQ(sum(timeline["busy"][u]), (*run.report.units)[u].busy) << memory << " unit " << u;
    std::uint64_t moved = 0;
    for (const Json& channel : timeline["moved"]) moved += sum(channel);
    // Stretches are rounded to whole bytes one by one.
    EXPECT_NEAR(static_cast<double>(moved), static_cast<double>(run.report.hbm_bytes()),
                static_cast<double>(timeline["moved"][0].size()));
  }
}

TEST(ReportJson, RegionsAndLoopsCarryTheirWork) {
  const Reported run = reported(kProgram);
  const Json& layer = run.json["regions"][1];
  EXPECT_EQ(layer["name"], "layer.0");
  EXPECT_EQ(layer["multiply_adds"], 20U * 4U * 4U * 64U);  // BLEN · BLEN · MLEN each
  EXPECT_EQ(layer["bytes"], run.report.hbm_bytes());
  EXPECT_EQ(run.json["loops"][0]["iterations"], 20);
  EXPECT_EQ(run.json["loops"][0]["name"], "line 7 to line 13");
}

TEST(ReportJson, AnIdealOverlapHasNoTimeline) {
  const Reported run = reported(kProgram, "hbm2-2000", "ideal");
  EXPECT_THAT(run.json["units"], testing::IsEmpty());
  EXPECT_EQ(run.json["timeline"]["details"].size(), 0U);
  EXPECT_EQ(run.json["regions"][1]["bytes"], run.report.hbm_bytes());
}

TEST(ReportJson, OfVeryManyRegionsThoseThatTookMostAreShown) {
  std::string text;
  for (std::size_t r = 0; r < kMostStretches + 10; ++r)
    text += fmt::format(".region r{}\nS_ADDI_INT gp1, gp0, 1\n.endregion\n", r);
  // Waits for the one before: 3 cycles instead of 1.
  text += ".region last\nS_ADD_INT gp1, gp1, gp1\n.endregion\n";
  const Reported run = reported(text);
  EXPECT_EQ(run.json["regions"].size(), kMostStretches);
  EXPECT_EQ(run.json["regions_of"], kMostStretches + 11);
  EXPECT_EQ(run.json["regions"].back()["name"], "last");
  EXPECT_EQ(run.json["timeline"]["regions"].back(), kMostStretches - 1);
}

TEST(ReportPage, NothingInASourceEndsItsScript) {
  const std::string page = reported(kProgram).page;
  std::size_t ends = 0;
  for (std::size_t at = 0; (at = page.find("</script>", at)) != std::string::npos; ++at) ++ends;
  EXPECT_EQ(ends, 2U);  // of the data and of the code
}

TEST(ReportPage, AsksNoNetwork) {
  std::string page = reported(kProgram).page;
  const std::string name_space = "http://www.w3.org/2000/svg";  // a name, not an address
  page.erase(page.find(name_space), name_space.size());
  EXPECT_THAT(page, Not(HasSubstr("http:")));
  EXPECT_THAT(page, Not(HasSubstr("https:")));
  EXPECT_THAT(page, Not(HasSubstr("src=")));
  EXPECT_THAT(page, Not(HasSubstr("@import")));
}

// Series keep their sum while their stretches widen, and never have more than there may be.
TEST(TimelineBins, ALongRunNeedsNoMoreRoomThanAShortOne) {
  BinnedSeries series;
  for (Cycle cycle = 0; cycle < 1'000'000; cycle += 10) series.add(cycle, cycle + 3);
  const auto amounts = series.widened(series.width());
  EXPECT_LE(amounts.size(), BinnedSeries::kMostBins);
  EXPECT_EQ(series.width(), 512U);  // the first power of two with 2048 of them beyond the end
  EXPECT_DOUBLE_EQ(std::accumulate(amounts.begin(), amounts.end(), 0.0), 300'000.0);
}

TEST(TimelineBins, RegionsFollowTheInstructionThatIsNext) {
  RegionSeries regions;
  regions.add(2, 0);
  regions.add(5, 1);
  EXPECT_THAT(regions.widened(1), ElementsAre(0, 0, 1, 1, 1));
  regions.add(2 * BinnedSeries::kMostBins, 0);
  EXPECT_EQ(regions.width(), 2U);
  auto widened = regions.widened(2);
  widened.resize(4);
  EXPECT_THAT(widened, ElementsAre(0, 1, 1, 0));
}

// One visit, since a browser takes seconds to start.
TEST(ReportPage, WorksInABrowserWithPointerAndKeys) {
  PLENA_NEEDS_CHROMIUM();
  const Reported run = reported(kProgram);
  const std::string saw = look_at_page(run.page, R"(
    const rows = () => [...document.querySelectorAll('#listing tbody tr')];
    const title = () => document.getElementById('scope-title').textContent;
    const canvas = document.getElementById('timeline-canvas');
    const window_ = () => [Number(canvas.dataset.from), Number(canvas.dataset.to)];
    const press = (key) => canvas.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));

    seen('title', document.title);
    seen('whole', rows().length);
    seen('comment', rows()[1].querySelector('.code em').textContent);

    document.querySelector('#loops button').click();
    seen('loop title', title());
    seen('loop lines', rows().map((row) => Number(row.dataset.line)));
    seen('address', location.hash);
    document.getElementById('by-cycles').click();
    seen('most first', rows().map((row) => Number(row.cells[1].textContent.replaceAll(',', ''))));
    document.querySelector('#regions li:nth-child(2) button').click();
    seen('region title', title());

    document.querySelector('#whole button').focus();
    document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowDown', bubbles: true}));
    seen('focus', document.activeElement.dataset.scope);

    const all = window_();
    press('+');
    const zoomed = window_();
    press('ArrowRight');
    const moved = window_();
    press('0');
    seen('windows', {all, zoomed, moved, back: window_()});
    seen('points', document.querySelectorAll('#roofline-drawing circle').length);
    seen('transfers', document.querySelectorAll('#hbm-latency .histogram').length);
    seen('settings', document.querySelectorAll('#settings-list div').length);
    seen('drawn', canvas.width > 0 && canvas.height > 0);
  )");
  ASSERT_FALSE(saw.empty()) << "the browser did not come to the end";
  const Json found = Json::parse(saw);

  EXPECT_THAT(found["errors"], testing::IsEmpty());
  EXPECT_EQ(found["title"], "tiles.asm – plena report");
  EXPECT_EQ(found["whole"], 14);
  EXPECT_THAT(found["comment"], HasSubstr("</script>"));
  EXPECT_EQ(found["loop title"], "Loop, line 7 to line 13");
  EXPECT_EQ(found["loop lines"], (Json{7, 8, 9, 10, 11, 12, 13}));
  EXPECT_EQ(found["address"], "#loop-0");
  const auto most_first = found["most first"].get<std::vector<std::uint64_t>>();
  EXPECT_EQ(most_first.size(), 5U);
  EXPECT_TRUE(std::ranges::is_sorted(most_first, std::ranges::greater{}));
  EXPECT_EQ(found["region title"], "Region layer.0");
  EXPECT_EQ(found["focus"], "region-0");

  const Json& windows = found["windows"];
  const std::int64_t total = static_cast<std::int64_t>(run.report.total);
  EXPECT_EQ(windows["all"], (Json{0, total}));
  EXPECT_NEAR(windows["zoomed"][0].get<double>(), static_cast<double>(total) / 4, 1);
  EXPECT_NEAR(windows["zoomed"][1].get<double>(), static_cast<double>(total) * 3 / 4, 1);
  EXPECT_GT(windows["moved"][0], windows["zoomed"][0]);
  EXPECT_EQ(windows["back"], windows["all"]);

  EXPECT_EQ(found["points"], 3);  // the program, its layer, its loop
  EXPECT_EQ(found["transfers"], 1);
  EXPECT_GT(found["settings"], 20);
  EXPECT_EQ(found["drawn"], true);
}

}  // namespace
}  // namespace plena
