// Safetensors files: an 8-byte length, a JSON header that names dtype, shape and place of every
// tensor, and the elements. Only the header is read; the elements stay mapped.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plena/base/error.h"
#include "plena/model/weight_reader.h"

namespace plena {

/// Adds the tensors of one file to `table`; they look into `file`. A header that is malformed,
/// tensors that overlap, leave the file or have another length than dtype and shape ask for, and a
/// name that is in the table already are errors that name `path`.
Status parse_safetensors(std::span<const std::uint8_t> file, const std::string& path,
                         TensorTable& table);

struct SafetensorsFiles {
  TensorTable table;
  std::vector<std::shared_ptr<const void>> storage;  // what the tensors look into
};

/// Opens the weights of a Hugging Face folder: model.safetensors, or the shards that
/// model.safetensors.index.json names.
Result<SafetensorsFiles> open_safetensors(const std::string& folder);

}  // namespace plena
