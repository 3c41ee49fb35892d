#include "plena/dram/preset.h"

#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "plena/base/files.h"
#include "plena/base/shared_data.h"

namespace plena::dram {
namespace {

TEST(DramPreset, TimingsAndOrganisationAreThoseTheReferenceModelResolves) {
  PLENA_NEEDS_SHARED();
  const auto text = read_text(shared_data() + "/dram/reference.json");
  ASSERT_TRUE(text.has_value());
  const auto presets = nlohmann::json::parse(*text)["presets"];
  ASSERT_EQ(presets.size(), 4U);
  for (const auto& [name, expected] : presets.items()) {
    SCOPED_TRACE(name);
    const auto preset = find_dram_preset(name);
    ASSERT_TRUE(preset.has_value());
    const Timings& t = preset->timings;
    const std::map<std::string, int> ours = {
        {"nBL", t.nBL},       {"nCL", t.nCL},       {"nRCDRD", t.nRCDRD},  {"nRCDWR", t.nRCDWR},
        {"nRP", t.nRP},       {"nRAS", t.nRAS},     {"nRC", t.nRC},        {"nWR", t.nWR},
        {"nRTP", t.nRTP},     {"nCWL", t.nCWL},     {"nCCDS", t.nCCDS},    {"nCCDL", t.nCCDL},
        {"nCCDR", t.nCCDR},   {"nRRDS", t.nRRDS},   {"nRRDL", t.nRRDL},    {"nFAW", t.nFAW},
        {"nWTRS", t.nWTRS},   {"nWTRL", t.nWTRL},   {"nRTW", t.nRTW},      {"nRFCpb", t.nRFCpb},
        {"nRREFD", t.nRREFD}, {"nREFI", t.nREFI},   {"nPPD", t.nPPD},      {"nRFC", t.nRFC},
        {"nRFMab", t.nRFMab}, {"nRFMpb", t.nRFMpb}, {"nREFIpb", t.nREFIpb}};
    for (const auto& [key, value] : expected["timing_ck"].items()) {
      ASSERT_TRUE(ours.contains(key)) << key;
      EXPECT_EQ(ours.at(key), value.get<int>()) << key;
    }
    EXPECT_EQ(t.nRTW, expected["derived_ck"]["read_to_write"].get<int>());
    EXPECT_EQ(preset->tck_ps, expected["tCK_ps"].get<int>());
    EXPECT_EQ(preset->ticks_per_ck, expected["ticks_per_ck"].get<int>());
    EXPECT_NEAR(preset->peak_gbps(), expected["peak_gbps_channel"].get<double>(), 0.001);
    EXPECT_EQ(preset->organisation.channel_bytes(),
              expected["organisation"]["channel_bytes"].get<std::uint64_t>());
  }
}

TEST(DramPreset, AnUnknownNameListsTheKnownOnes) {
  const auto preset = find_dram_preset("ddr5");
  ASSERT_FALSE(preset.has_value());
  EXPECT_EQ(preset.error().message, "unknown HBM preset 'ddr5'");
  EXPECT_NE(preset.error().hint.find("hbm2-1600, hbm2-2000, hbm2-2400, hbm3-6400, ideal"),
            std::string::npos);
}

}  // namespace
}  // namespace plena::dram
