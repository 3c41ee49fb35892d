#include "plena/dram/stream_case.h"

#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "plena/dram/testing/reference_data.h"

namespace plena::dram {
namespace {

nlohmann::json valid_case() {
  return nlohmann::json::parse(R"({
    "id": "mine", "device": "HBM2-2000", "channels": 1, "interleave_bytes": 0, "map": "mop",
    "scheduler": "FRFCFS", "refresh": "all-bank", "outstanding": null, "n": 6,
    "trace": {"kind": "counters", "base": 64, "counters": [[1, 2, 1024], [2, 0, 32]]},
    "write": {"rule": "mod", "m": 3, "set": [2]},
    "when": {"rule": "periodic", "num": 5, "den": 2, "group": 2}})");
}

Result<std::vector<StreamCase>> parse(const nlohmann::json& json) {
  return parse_stream_cases(json.dump(), "cases.json");
}

TEST(StreamCase, DescribesAddressesWritesAndOfferedCycles) {
  const auto cases = parse(valid_case());
  ASSERT_TRUE(cases.has_value()) << cases.error().message;
  StreamRequests requests(cases->front());
  // base + 1024 * (k mod 2) + 32 * (k div 2); every third a write; floor(floor(k / 2) * 5 / 2).
  const std::uint64_t addresses[] = {64, 1088, 96, 1120, 128, 1152};
  const std::uint64_t offered[] = {0, 0, 2, 2, 5, 5};
  for (std::uint64_t k = 0; k < 6; ++k) {
    EXPECT_EQ(requests.offered_ck(k), offered[k]);
    const Request request = requests.next();
    EXPECT_EQ(request.address, addresses[k]);
    EXPECT_EQ(request.is_write, k % 3 == 2);
    EXPECT_EQ(request.id, k);
  }
}

TEST(StreamCase, RegeneratesEveryTraceOfTheReference) {
  PLENA_NEEDS_SHARED();
  ASSERT_EQ(testing::reference_cases().size(), 375U);
  std::uint64_t requests = 0;
  for (const StreamCase& stream : testing::reference_cases()) {
    if (stream.requests > 20'000) continue;
    ASSERT_TRUE(stream.checksum.has_value()) << stream.id;
    EXPECT_EQ(StreamRequests::checksum(stream), *stream.checksum) << stream.id;
    requests += stream.requests;
  }
  EXPECT_GT(requests, 100'000U);
}

TEST(StreamCase, MissingKeysHaveTheirDefaults) {
  const auto cases =
      parse_stream_cases(R"({"n": 1, "trace": {"kind": "lcg", "seed": 1, "bits": 25}})", "x");
  ASSERT_TRUE(cases.has_value()) << cases.error().message;
  EXPECT_EQ(cases->front().memory.preset.name, "hbm2-2000");
  EXPECT_EQ(cases->front().memory.channels, 1U);
  EXPECT_FALSE(cases->front().expected.has_value());
}

struct Mistake {
  const char* pointer;
  const char* value;
  const char* message;  // part of it
};

class StreamCaseMistake : public ::testing::TestWithParam<Mistake> {};

TEST_P(StreamCaseMistake, IsAnErrorThatNamesTheKey) {
  nlohmann::json json = valid_case();
  json[nlohmann::json::json_pointer(GetParam().pointer)] = nlohmann::json::parse(GetParam().value);
  const auto cases = parse(json);
  ASSERT_FALSE(cases.has_value());
  EXPECT_NE(cases.error().message.find(GetParam().message), std::string::npos)
      << cases.error().message;
  EXPECT_EQ(exit_status(cases.error().code), 2);
}

INSTANTIATE_TEST_SUITE_P(
    All, StreamCaseMistake,
    ::testing::Values(
        Mistake{"/n", "0", "'n' is 0; possible: 1 to 4294967296"},
        Mistake{"/n", "-5", "'n' is not a whole number from 0 up"},
        Mistake{"/n", "1e9", "'n' is not a whole number from 0 up"},
        Mistake{"/device", "\"DDR4\"", "unknown HBM preset 'DDR4'"},
        Mistake{"/device", "7", "'device' is not a string"},
        Mistake{"/map", "\"rows\"", "unknown address map 'rows'"},
        Mistake{"/refresh", "\"often\"", "unknown refresh mode 'often'"},
        Mistake{"/scheduler", "\"FIFO\"", "'scheduler' is neither FRFCFS nor FRFCFS-RowHit"},
        Mistake{"/channels", "3", "a power of two up to 256 is needed"},
        Mistake{"/channels", "8", "channel interleave of 0 bytes"},
        Mistake{"/outstanding", "0", "'outstanding' is 0"},
        Mistake{"/read_queue", "0", "'read_queue' is 0"},
        Mistake{"/trace", "[]", "'trace' is not an object"},
        Mistake{"/trace/kind", "\"random\"", "'trace.kind' is neither counters nor lcg"},
        Mistake{"/trace/counters", "[[1, 2]]", "triples [d, m, step]"},
        Mistake{"/trace/counters/0/0", "0", "'trace.counters' is 0"},
        Mistake{"/trace/counters/1/2", "70368744177664", "leaves the memory of 2147483648 bytes"},
        Mistake{"/trace/base", "2147483648", "leaves the memory"},
        Mistake{"/write/rule", "\"often\"", "'write.rule' is none of never, always, mod"},
        Mistake{"/write/m", "0", "'write.m' is 0"},
        Mistake{"/write/set", "[3]", "'write.set' is 3; possible: 0 to 2"},
        Mistake{"/when/rule", "\"later\"", "'when.rule' is neither asap nor periodic"},
        Mistake{"/when/den", "0", "'when.den' is 0"},
        Mistake{"/trace_fnv1a64", "\"xyz\"", "'trace_fnv1a64' is not a hexadecimal number"},
        Mistake{"/result", "{\"total_cycles\": 0}",
                "'result.total_cycles' is not a number above 0"},
        Mistake{"/result", "3", "'result' is not an object"}));

TEST(StreamCase, TextThatIsNoCaseIsAnError) {
  for (const char* text : {"", "{", "[]", "3", "{\"cases\": 3}", "{\"cases\": [4]}", "{}"}) {
    const auto cases = parse_stream_cases(text, "cases.json");
    ASSERT_FALSE(cases.has_value()) << text;
    EXPECT_NE(cases.error().render().find("cases.json"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace plena::dram
