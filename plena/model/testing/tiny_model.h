// What the tests of importers share: reference ids and logits of the small models in the shared
// data.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "plena/base/files.h"
#include "plena/base/npy.h"

namespace plena::testing {

// f32 runs of different order agree within 2e-5; the smallest mistake seen costs 3e-4.
inline constexpr float kLogitTolerance = 1e-4F;

inline nlohmann::json read_json(const std::string& path) {
  return nlohmann::json::parse(read_text(path).value());
}

inline std::vector<float> reference_logits(const std::string& folder) {
  return read_npy(folder + "/reference_logits.npy").value().values<float>();
}

/// The ids whose logits the reference has.
inline std::vector<std::uint32_t> reference_ids(const std::string& folder) {
  const auto reference = read_json(folder + "/reference.json");
  auto ids = reference.at("input_ids").get<std::vector<std::uint32_t>>();
  if (reference.contains("greedy_ids")) {
    const auto greedy = reference.at("greedy_ids").get<std::vector<std::uint32_t>>();
    ids.insert(ids.end(), greedy.begin(), greedy.end());
  } else {
    ids.resize(ids.size() + reference.at("gen_length").get<std::size_t>(),
               reference.at("mask_token_id").get<std::uint32_t>());
  }
  return ids;
}

inline float worst_difference(const std::vector<float>& found, const std::vector<float>& expected) {
  if (found.size() != expected.size()) return INFINITY;
  float worst = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    worst = std::max(worst, std::abs(found[i] - expected[i]));
  }
  return worst;
}

}  // namespace plena::testing
