#include "plena/config/settings.h"

#include <filesystem>
#include <random>

#include <gtest/gtest.h>

#include "plena/base/files.h"
#include "plena/base/shared_data.h"

namespace plena {
namespace {

constexpr std::string_view kSmall = R"([MODE]
active = "transactional"
[TRANSACTIONAL.CONFIG]
MLEN = {value = 64}
BLEN = {value = 4}
HLEN = {value = 16}
VLEN = {value = 64}
MATRIX_SRAM_SIZE = {value = 128}
VECTOR_SRAM_SIZE = {value = 256}
HBM_SIZE = {value = 1048576}
HBM_M_Prefetch_Amount = {value = 64}
HBM_V_Prefetch_Amount = {value = 4}
HBM_V_Writeback_Amount = {value = 4}
)";

Result<LoadedSettings> parse_small(std::string_view more) {
  return parse_settings(std::string(kSmall) + std::string(more), "small.toml");
}

std::string shared_settings() {
  return shared_data() + "/config/plena_settings.toml";
}

TEST(Settings, DefaultIsTheSpecificationsTable) {
  const Settings settings;
  EXPECT_TRUE(check(settings));
  EXPECT_EQ(settings.hbm_size, 137'438'953'472U);  // semantics 1: 128 GiB
  EXPECT_EQ(settings.matrix_sram_size / settings.mlen, 64U);
}

// The values of the file's two sections, read off it.
TEST(SettingsFile, TheRealFileLoadsUnchangedInBothModes) {
  PLENA_NEEDS_SHARED();
  const auto active = load_settings(shared_settings());
  ASSERT_TRUE(active) << active.error().render();
  EXPECT_TRUE(active->warnings.empty());
  EXPECT_TRUE(check(active->settings));
  EXPECT_EQ(active->settings.mlen, 2048U);
  EXPECT_EQ(active->settings.matrix_sram_size, 256U);  // below MLEN: loads all the same
  EXPECT_EQ(active->settings.max_loop_instructions, 10'000U);

  const auto transactional = load_settings(shared_settings(), "transactional");
  ASSERT_TRUE(transactional) << transactional.error().render();
  EXPECT_TRUE(transactional->warnings.empty());
  EXPECT_TRUE(check(transactional->settings));
  EXPECT_EQ(transactional->settings.hbm_size, std::uint64_t{16} << 30);
  EXPECT_EQ(transactional->settings.vector_sram_size, 4'194'304U);
  EXPECT_EQ(transactional->settings.scalar_fp, DataType::plain(kBf16));
  EXPECT_EQ(transactional->settings.hbm_v_kv_type, DataType::mx(kE4M3, 8));
  EXPECT_EQ(transactional->settings.latency.at("VECTOR_SUM_CYCLES"), 8U);
}

TEST(SettingsFile, EverySharedFileLoads) {
  PLENA_NEEDS_SHARED();
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(shared_data())) {
    if (entry.path().extension() != ".toml") continue;
    const auto loaded = load_settings(entry.path().string());
    ASSERT_TRUE(loaded) << loaded.error().render();
    EXPECT_TRUE(check(loaded->settings)) << entry.path();
    ++files;
  }
  EXPECT_GE(files, 2U);
}

TEST(SettingsFile, DcEnPicksTheLatencyColumn) {
  constexpr std::string_view kLatency =
      "[TRANSACTIONAL.LATENCY.VECTOR_MUL_CYCLES]\ndc_lib_en = 1\ndc_lib_dis = 5\n";
  auto loaded = parse_small(std::string("DC_EN = {value = 0}\n") + std::string(kLatency));
  ASSERT_TRUE(loaded) << loaded.error().render();
  EXPECT_EQ(loaded->settings.latency.at("VECTOR_MUL_CYCLES"), 5U);

  ASSERT_TRUE(set_value(loaded->settings, "DC_EN=1"));
  EXPECT_EQ(loaded->settings.latency.at("VECTOR_MUL_CYCLES"), 1U);
}

TEST(SettingsFile, UnknownKeyIsAWarningWithFileAndLine) {
  const auto loaded = parse_small("MLNE = {value = 3}\n");
  ASSERT_TRUE(loaded);
  ASSERT_EQ(loaded->warnings.size(), 1U);
  EXPECT_EQ(loaded->warnings[0],
            "small.toml:14: warning: unknown key TRANSACTIONAL.CONFIG.MLNE: did you mean MLEN?");
}

TEST(SettingsFile, UnknownTablesAreWarnings) {
  const auto loaded = parse_small("[TRANSACTIONAL.EXTRA]\nx = 1\n[elsewhere]\ny = 2\n");
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->warnings.size(), 2U);
}

TEST(SettingsFile, KeysWithoutEffectAreSilent) {
  const auto loaded = parse_small(
      "DC_EN = {value = 1}\nBROADCAST_AMOUNT = {value = 4}\nHBM_WIDTH = {value = 512}\n"
      "[TRANSACTIONAL.PRECISION.HBM_V_INT_TYPE]\nformat = \"Plain\"\n"
      "DATA_TYPE = {type = \"Int\", width = 32}\n");
  ASSERT_TRUE(loaded) << loaded.error().render();
  EXPECT_TRUE(loaded->warnings.empty());
}

TEST(SettingsFile, BroadcastAmountOtherThanHeadsIsAWarning) {
  const auto loaded = parse_small("BROADCAST_AMOUNT = {value = 8}\n");
  ASSERT_TRUE(loaded);
  ASSERT_EQ(loaded->warnings.size(), 1U);
  EXPECT_NE(loaded->warnings[0].find("small.toml:14:"), std::string::npos);
  EXPECT_NE(loaded->warnings[0].find("MLEN/HLEN = 4"), std::string::npos);
}

TEST(SettingsFile, OneErrorNamesAllMissingKeys) {
  const auto loaded =
      parse_settings("[MODE]\nactive = \"analytic\"\n[ANALYTIC.CONFIG.MLEN]\nvalue = 64\n", "f");
  ASSERT_FALSE(loaded);
  EXPECT_NE(loaded.error().message.find("BLEN, HLEN, VLEN"), std::string::npos);
  EXPECT_NE(loaded.error().message.find("HBM_V_Writeback_Amount"), std::string::npos);
}

TEST(SettingsFile, ErrorsPointAtTheLine) {
  const auto loaded = parse_small("INT_SRAM_DEPTH = {value = -1}\n");
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().place.line, 14U);
  EXPECT_EQ(loaded.error().place.source_line, "INT_SRAM_DEPTH = {value = -1}");
}

TEST(SettingsFile, RefusesValuesOfTheWrongKind) {
  for (const char* bad :
       {"INT_SRAM_DEPTH = 5\n", "INT_SRAM_DEPTH = {value = \"5\"}\n", "INT_SRAM_DEPTH = {}\n",
        "INT_SRAM_DEPTH = {value = 4294967296}\n", "INT_SRAM_DEPTH = {value = 1.5}\n",
        "DC_EN = {value = 99999999999999999999}\n", "[TRANSACTIONAL.PRECISION]\nSCALAR_FP = 3\n",
        "[TRANSACTIONAL.PRECISION.SCALAR_FP]\ntype = \"Float\"\n",
        "[TRANSACTIONAL.PRECISION.SCALAR_FP]\ntype = \"Fp\"\nexponent = 8\nmantissa = 7\n",
        "[TRANSACTIONAL.PRECISION.SCALAR_FP]\nformat = \"Plain\"\n",
        "[TRANSACTIONAL.PRECISION.HBM_V_KV_TYPE]\nformat = \"Mx\"\nblock = 8\n",
        "[TRANSACTIONAL.LATENCY.VECTOR_ADD_CYCLES]\ndc_lib_en = 1\n"}) {
    EXPECT_FALSE(parse_small(bad)) << bad;
  }
}

TEST(SettingsFile, AScaleOtherThanE8M0IsAnError) {
  const auto loaded = parse_small(
      "[TRANSACTIONAL.PRECISION.HBM_V_KV_TYPE]\nformat = \"Mx\"\nblock = 8\n"
      "ELEM = {type = \"Fp\", sign = true, exponent = 4, mantissa = 3}\n"
      "SCALE = {type = \"Fp\", sign = false, exponent = 4, mantissa = 4}\n");
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().place.line, 18U);
}

TEST(SettingsFile, AnUnknownModeNamesThoseThereAre) {
  const auto loaded = parse_settings(kSmall, "small.toml", "anlytic");
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().hint, "transactional");
  EXPECT_TRUE(parse_settings(kSmall, "small.toml", "Transactional"));
}

TEST(SettingsFile, EveryTruncationIsOneErrorOrLoads) {
  const std::string whole = to_toml(Settings());
  std::size_t errors = 0;
  for (std::size_t length = 0; length < whole.size(); length += 7) {
    const auto loaded = parse_settings(whole.substr(0, length), "cut.toml");
    if (loaded) continue;
    EXPECT_FALSE(loaded.error().message.empty());
    ++errors;
  }
  EXPECT_GT(errors, 100U);
}

TEST(SettingsFile, RandomBytesNeverCrash) {
  std::mt19937 random(1);
  const std::string whole = to_toml(Settings());
  for (int round = 0; round < 300; ++round) {
    std::string text = round % 2 == 0 ? whole : std::string(random() % 200, ' ');
    const int edits = round % 2 == 0 ? 4 : static_cast<int>(text.size());
    for (int i = 0; i < edits; ++i) text[random() % text.size()] = static_cast<char>(random());
    (void)parse_settings(text, "noise.toml");
  }
}

TEST(SettingsFile, WhatIsWrittenIsReadBack) {
  Settings settings;
  ASSERT_TRUE(set_value(settings, "HBM_M_KV_TYPE=mxint4:block32"));
  ASSERT_TRUE(set_value(settings, "SCALAR_FP=fp(1,6,9)"));
  settings.latency_columns["VECTOR_ADD_CYCLES"] = {3, 4};
  ASSERT_TRUE(set_value(settings, "DC_EN=0"));

  const auto loaded = parse_settings(to_toml(settings), "again.toml");

  ASSERT_TRUE(loaded) << loaded.error().render();
  EXPECT_TRUE(loaded->warnings.empty());
  EXPECT_EQ(loaded->settings, settings);
}

TEST(SetValue, TakesUnitsAndTypeNames) {
  Settings settings;
  ASSERT_TRUE(set_value(settings, "HBM_SIZE=16GiB"));
  EXPECT_EQ(settings.hbm_size, std::uint64_t{16} << 30);
  ASSERT_TRUE(set_value(settings, "VECTOR_SRAM_SIZE=2KiB"));
  EXPECT_EQ(settings.vector_sram_size, 2048U);
  ASSERT_TRUE(set_value(settings, "HBM_M_WEIGHT_TYPE=mxfp4_e2m1:block32"));
  EXPECT_EQ(settings.hbm_m_weight_type, DataType::mx(kE2M1, 32));
}

TEST(SetValue, RefusesUnknownKeysAndBadValues) {
  Settings settings;
  const auto unknown = set_value(settings, "MLE=64");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().hint, "did you mean MLEN?");
  for (const char* bad : {"", "MLEN", "=", "MLEN=", "MLEN=-1", "MLEN=64K", "MLEN=4294967296",
                          "HBM_SIZE=99999999999GiB", "HBM_SIZE=18446744073709551616",
                          "SCALAR_FP=float", "HBM_V_INT_TYPE=nonsense", "HBM_WIDTH=x"}) {
    EXPECT_FALSE(set_value(settings, bad)) << bad;
  }
  EXPECT_EQ(settings, Settings());
}

struct Contradiction {
  const char* assignment;
  const char* rule;  // part of the message
};

// semantics 1, one row a rule.
const Contradiction kContradictions[] = {
    {"BLEN=3", "BLEN = 3 does not divide HLEN = 16"},
    {"HLEN=24", "HLEN = 24 does not divide MLEN = 64"},
    {"VLEN=96", "MLEN = 64 does not divide VLEN = 96"},
    {"VLEN=1024", "exceeds the 32 bits of V_MASK"},
    {"HBM_M_Prefetch_Amount=96", "not a multiple of MLEN"},
    {"MLEN=0", "MLEN = 0 is out of range"},
    {"HBM_SIZE=1024TiB", "HBM_SIZE"},
    {"MAX_LOOP_INSTRUCTIONS=0x7FFFFFFFFFFFFFFF", ""},
    {"VECTOR_SRAM_SIZE=1024GiB", "more elements than addresses can name"},
    {"FP_SRAM_DEPTH=1GiB", "FP_SRAM_DEPTH"},
    {"SCALAR_FP=mxint8", "SCALAR_FP = mxint8 is not a format instructions compute in"},
    {"VECTOR_SRAM_TYPE=fp(1,1,3)", "VECTOR_SRAM_TYPE"},
    {"MATRIX_SRAM_TYPE=fp(0,8,7)", "MATRIX_SRAM_TYPE"},
    {"MATRIX_SRAM_TYPE=int(8)", "MATRIX_SRAM_TYPE"},
    {"HBM_V_ACT_TYPE=int(1)", "HBM_V_ACT_TYPE = int(1) is not a format HBM can hold"},
    {"HBM_V_ACT_TYPE=fp(1,9,3)", "HBM_V_ACT_TYPE"},
};

TEST(Check, SaysWhichRuleIsBrokenAndWhatWouldSatisfyIt) {
  for (const auto& [assignment, rule] : kContradictions) {
    Settings settings;
    ASSERT_TRUE(set_value(settings, assignment)) << assignment;
    const auto checked = check(settings);
    if (std::string_view(rule).empty()) {
      EXPECT_TRUE(checked) << assignment;
      continue;
    }
    ASSERT_FALSE(checked) << assignment;
    EXPECT_NE(checked.error().message.find(rule), std::string::npos) << checked.error().message;
    EXPECT_FALSE(checked.error().hint.empty()) << assignment;
  }
}

TEST(Check, NamesTheNearestValuesThatWouldDo) {
  Settings settings;
  settings.hlen = 24;
  const auto checked = check(settings);
  ASSERT_FALSE(checked);
  EXPECT_NE(checked.error().hint.find("HLEN = 16 or MLEN = 72 does"), std::string::npos)
      << checked.error().hint;
}

TEST(Symbols, HoldEveryIntegerKey) {
  Settings settings;
  settings.mlen = 128;
  std::map<std::string, std::int64_t> symbols;
  for (const auto& [name, value] : integer_symbols(settings)) symbols[name] = value;
  EXPECT_EQ(symbols.at("MLEN"), 128);
  EXPECT_EQ(symbols.at("HBM_V_Prefetch_Amount"), 4);
  EXPECT_EQ(symbols.at("FP_SRAM_DEPTH"), 4096);
  EXPECT_EQ(symbols.at("HBM_SIZE"), 137'438'953'472);
  EXPECT_EQ(symbols.at("HBM_WIDTH"), 512);
}

}  // namespace
}  // namespace plena
