// minGPT models as one JSON object: `config`, and every tensor as shape, dtype and base64 elements.
// They are small; the elements are decoded when the file is opened.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "plena/base/error.h"
#include "plena/model/weight_reader.h"

namespace plena {

struct MinGptTensors {
  TensorTable table;
  std::vector<std::shared_ptr<const void>> storage;  // what the tensors look into
};

/// The tensors of the object, `config` left out. Elements are torch.float32; what is malformed is
/// an error that names `path` and the tensor.
Result<MinGptTensors> read_mingpt_tensors(const nlohmann::json& object, const std::string& path);

}  // namespace plena
