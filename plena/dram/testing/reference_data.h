// The shared reference measurements, as tests read them.
#pragma once

#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <zstd.h>

#include "plena/base/files.h"
#include "plena/base/shared_data.h"
#include "plena/dram/stream_case.h"
#include "plena/dram/testing/constraint_rules.h"

namespace plena::dram::testing {

inline std::string dram_data(const std::string& name) {
  return shared_data() + "/dram/" + name;
}

/// Every case of reference.json, read once.
inline const std::vector<StreamCase>& reference_cases() {
  static const std::vector<StreamCase> cases = [] {
    auto loaded = load_stream_cases(dram_data("reference.json"));
    return loaded ? *loaded : std::vector<StreamCase>{};
  }();
  return cases;
}

inline const StreamCase* reference_case(const std::string& id) {
  for (const StreamCase& stream : reference_cases())
    if (stream.id == id) return &stream;
  return nullptr;
}

/// A whole zstd file; what cannot be unpacked is left out.
inline std::string unpack(const Bytes& packed) {
  std::string text;
  const std::unique_ptr<ZSTD_DStream, std::size_t (*)(ZSTD_DStream*)> stream(ZSTD_createDStream(),
                                                                             ZSTD_freeDStream);
  ZSTD_inBuffer input{packed.data(), packed.size(), 0};
  std::string block(ZSTD_DStreamOutSize(), '\0');
  while (input.pos < input.size) {
    ZSTD_outBuffer output{block.data(), block.size(), 0};
    if (ZSTD_isError(ZSTD_decompressStream(stream.get(), &output, &input)) != 0) break;
    text.append(block, 0, output.pos);
  }
  return text;
}

/// The rows of a trace, by column name; empty where there is no such file.
using TraceRow = std::map<std::string, std::string>;

inline std::vector<TraceRow> read_trace(const std::string& case_id, const std::string& kind) {
  std::string file = case_id;
  for (char& c : file)
    if (c == '/') c = '_';
  auto packed = read_file(dram_data("traces/" + file + "." + kind + ".tsv.zst"));
  if (!packed) return {};
  const std::string text = unpack(*packed);
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  const std::vector<std::string> names = split(line, '\t');
  std::vector<TraceRow> rows;
  while (std::getline(lines, line)) {
    const std::vector<std::string> fields = split(line, '\t');
    TraceRow row;
    for (std::size_t i = 0; i < fields.size(); ++i) row[names[i]] = fields[i];
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace plena::dram::testing
