#include "plena/dram/controller.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

namespace plena::dram {
namespace {

DramSettings settings(const char* preset, std::uint32_t channels) {
  return {.preset = *find_dram_preset(preset), .channels = channels};
}

std::vector<Completion> finish(Controller& memory) {
  memory.finish_all();
  std::vector<Completion> completions;
  memory.take_completions([&](const Completion& one) { completions.push_back(one); });
  std::sort(completions.begin(), completions.end(),
            [](const Completion& a, const Completion& b) { return a.id < b.id; });
  return completions;
}

TEST(Controller, OneReadOfAnIdleMemoryTakesActivateReadAndBurst) {
  auto memory = Controller::make(settings("hbm2-2000", 8));
  ASSERT_TRUE(memory.has_value());
  ASSERT_TRUE(memory->try_submit({.address = 0x12340, .id = 9}, 100));
  const auto completions = finish(*memory);
  ASSERT_EQ(completions.size(), 1U);
  // Hand-over 1, ACT to read 15, nCL + nBL 16.
  EXPECT_EQ(completions[0],
            (Completion{.id = 9, .accepted = 100, .finished = 132, .is_write = false}));
}

TEST(Controller, AFullQueueRefusesAndSaysWhenThereIsRoom) {
  auto refusing = Controller::make(settings("hbm2-2000", 1));
  ASSERT_TRUE(refusing.has_value());
  Tick tick = 0;
  std::uint64_t id = 0;
  while (refusing->try_submit({.address = 32 * id, .id = id}, tick)) ++id;
  EXPECT_EQ(id, 32U);
  EXPECT_EQ(refusing->queued(0, false), 32U);
  Controller waiting = *refusing;  // a copy goes on from the same state

  tick = refusing->room_at({.address = 32 * id});
  EXPECT_GT(tick, 0);
  EXPECT_TRUE(refusing->try_submit({.address = 32 * id, .id = id}, tick));
  EXPECT_EQ(waiting.submit({.address = 32 * id, .id = id}, 0), tick);
  EXPECT_EQ(finish(waiting), finish(*refusing));
}

TEST(Controller, ChannelsWorkSideBySide) {
  auto memory = Controller::make(settings("hbm2-2000", 8));
  ASSERT_TRUE(memory.has_value());
  for (std::uint64_t channel = 0; channel < 8; ++channel)
    ASSERT_TRUE(memory->try_submit({.address = 256 * channel, .id = channel}, 0));
  for (const Completion& completion : finish(*memory)) EXPECT_EQ(completion.finished, 32);
  EXPECT_EQ(memory->statistics().reads().rows.misses, 8U);
  EXPECT_EQ(memory->statistics_by_channel().size(), 8U);
}

TEST(Controller, AdvancingInStepsChangesNothing) {
  auto at_once = Controller::make(settings("hbm3-6400", 2));
  ASSERT_TRUE(at_once.has_value());
  Controller in_steps = *at_once;
  Tick tick = 0;
  for (std::uint64_t id = 0; id < 500; ++id) {
    const Request request{.address = id * 7 * 32 % 65536, .id = id, .is_write = id % 3 == 0};
    const Tick accepted = at_once->submit(request, tick);
    while (!in_steps.try_submit(request, tick)) in_steps.advance_to(tick += 2);
    ASSERT_EQ(tick, accepted);
  }
  EXPECT_EQ(finish(in_steps), finish(*at_once));
}

TEST(Controller, TheLogSeesEveryCommandAndChangesNone) {
  auto watched = Controller::make(settings("hbm2-2000", 2));
  ASSERT_TRUE(watched.has_value());
  Controller alone = *watched;
  CommandLog log;
  watched->set_log(&log);
  for (std::uint64_t id = 0; id < 64; ++id) {
    watched->submit({.address = 32 * id, .id = id}, 0);
    alone.submit({.address = 32 * id, .id = id}, 0);
  }
  EXPECT_EQ(finish(*watched), finish(alone));
  const auto statistics = watched->statistics();
  std::uint64_t commands = 0;
  for (const std::uint64_t count : statistics.commands) commands += count;
  EXPECT_EQ(log.size(), commands);
  EXPECT_EQ(statistics.commands[static_cast<std::size_t>(Command::Read)], 64U);
}

TEST(Controller, RefusesSettingsThatMakeNoSense) {
  DramSettings bad = settings("hbm2-2000", 1);
  bad.read_queue = 0;
  EXPECT_FALSE(Controller::make(bad).has_value());
  bad = settings("hbm2-2000", 1);
  bad.write_queue = 1'000'000;
  EXPECT_FALSE(Controller::make(bad).has_value());
  bad = settings("hbm2-2000", 12);
  EXPECT_FALSE(Controller::make(bad).has_value());
}

TEST(IdealMemory, GivesPeakBandwidthAtAFixedLatency) {
  auto memory = Controller::make(settings("ideal", 8));
  ASSERT_TRUE(memory.has_value());
  for (std::uint64_t id = 0; id < 80; ++id)
    ASSERT_TRUE(memory->try_submit({.address = 32 * id, .id = id}, 5));
  const auto completions = finish(*memory);
  // Eight bursts a tick from tick 6 on; a read takes nCL + nBL more.
  for (std::uint64_t id = 0; id < 80; ++id)
    EXPECT_EQ(completions[id].finished, 6 + static_cast<Tick>(id / 8) + 16);
  EXPECT_DOUBLE_EQ(memory->peak_gbps(), 256);
}

}  // namespace
}  // namespace plena::dram
