// A Perfetto trace as a viewer would see it, for tests: parsed by libprotobuf, names resolved.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace plena {

struct DecodedSlice {
  std::string track;
  std::string name;
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::uint32_t depth = 0;  // slices of its track that it lies in
  std::uint32_t line = 0;   // 0: none
  std::map<std::string, std::uint64_t> numbers;
  std::map<std::string, std::string> texts;
};

struct DecodedCount {
  std::string track;
  std::uint64_t at = 0;
  std::int64_t value = 0;
};

struct DecodedTrace {
  std::string process;
  std::vector<std::string> tracks;   // in the order of their descriptions
  std::vector<DecodedSlice> slices;  // in the order of their ends in the file
  std::vector<DecodedCount> counts;

  [[nodiscard]] std::vector<DecodedSlice> on(const std::string& track) const;
};

/// Fails the test when a file is no trace: bytes that do not parse, fields outside the schema, a
/// track or a name nobody described, an end without its beginning, a slice that is still open,
/// times that go back within a track.
DecodedTrace decode_trace(const std::string& path);

}  // namespace plena
