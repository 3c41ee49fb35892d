// GGUF files, version 3: metadata as keys and values, the names, shapes and types of tensors, then
// the tensors themselves, which stay mapped. Little-endian only.
#pragma once

#include <memory>
#include <span>
#include <string>

#include <nlohmann/json.hpp>

#include "plena/base/error.h"
#include "plena/base/files.h"
#include "plena/model/model.h"
#include "plena/model/weight_reader.h"

namespace plena {

struct Gguf {
  nlohmann::json metadata;  // an object, `llama.block_count` and so on; strings may be no UTF-8
  TensorTable tensors;      // shapes outermost first, which is the reverse of the file
};

/// Whether a file starts as GGUF does.
bool is_gguf(std::span<const std::uint8_t> file);

/// Reads the metadata and the table of tensors, which look into `file`. A truncated file, sizes
/// that leave it, tensors that overlap, and names given twice are errors that name `path`.
Result<Gguf> parse_gguf(std::span<const std::uint8_t> file, const std::string& path);

/// The model of a GGUF file, not yet checked by check_model(). An unknown general.architecture is
/// an error that lists the known ones.
Result<Model> import_gguf(const Gguf& gguf, const std::string& path);

}  // namespace plena
