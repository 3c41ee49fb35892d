// Opening a model, whatever kind of file or folder it is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "plena/base/error.h"
#include "plena/model/model.h"

namespace plena {

struct OpenModelOptions {
  /// Make weights up from this seed instead of reading any: only config.json is needed.
  std::optional<std::uint64_t> random_weights;
  /// Keep the first so many layers only; 0: all. More than the model has is an error.
  std::uint32_t layers = 0;
};

/// Opens what `path` names:
/// - a Hugging Face folder (config.json; model.safetensors or its index and shards), or the
///   config.json itself, which is the same for random weights;
/// - a GGUF file;
/// - a llama2.c checkpoint, or a folder with one `.bin` beside tokenizers (tok*.bin);
/// - a minGPT model as JSON (config and base64 tensors).
/// Weights stay in the file until they are read. An unknown architecture is an error that lists the
/// known ones; whatever is missing, malformed or contradicts something else names the file.
Result<Model> open_model(const std::string& path, const OpenModelOptions& options = {});

/// The file that open_model(path) starts from: `path`, or in a folder config.json, else its only
/// model.
Result<std::string> find_model_file(const std::string& path);

/// Whether a file of this name belongs to a llama2.c checkpoint as its tokenizer: tok*.bin.
bool is_llama2c_tokenizer_name(const std::string& name);

/// Whether the sizes of a config are in range and fit each other, and the weights are there in the
/// shapes they ask for. Importers end with it; for models made otherwise, too.
Status check_model(const Model& model);

}  // namespace plena
