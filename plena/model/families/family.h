// What a family is to the importers: the names it goes by in config.json, and a function that reads
// its keys and binds its tensors. One file a family.
#pragma once

#include <span>
#include <string_view>

#include "plena/model/config_reader.h"
#include "plena/model/model.h"
#include "plena/model/weight_reader.h"

namespace plena {

/// Fills `model.config` and the weights from a config and tensors with the family's own names. What
/// is wrong stays in the two readers.
using ImportFamily = void (*)(ConfigReader& config, WeightReader& weights, Model& model);

void import_llama(ConfigReader& config, WeightReader& weights, Model& model);
void import_mistral(ConfigReader& config, WeightReader& weights, Model& model);
void import_mixtral(ConfigReader& config, WeightReader& weights, Model& model);
void import_qwen2(ConfigReader& config, WeightReader& weights, Model& model);
void import_qwen3(ConfigReader& config, WeightReader& weights, Model& model);
void import_qwen3_moe(ConfigReader& config, WeightReader& weights, Model& model);
void import_gemma2(ConfigReader& config, WeightReader& weights, Model& model);
void import_gemma3(ConfigReader& config, WeightReader& weights, Model& model);
void import_gpt_oss(ConfigReader& config, WeightReader& weights, Model& model);
void import_gpt2(ConfigReader& config, WeightReader& weights, Model& model);
void import_llada(ConfigReader& config, WeightReader& weights, Model& model);
void import_masked_llama(ConfigReader& config, WeightReader& weights, Model& model);

struct Architecture {
  std::string_view name;  // an entry of `architectures` in config.json
  ImportFamily import;
};

/// Every architecture there is, in the order errors list them.
std::span<const Architecture> architectures();

}  // namespace plena
