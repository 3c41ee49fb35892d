// The tokenizer that belongs to a model: where it lies, in a form that an image can carry.
#pragma once

#include <string>

#include "plena/base/error.h"
#include "plena/base/files.h"
#include "plena/model/model.h"

namespace plena {

/// What Tokenizer::parse() takes, for the model that open_model(path) opened:
/// - of a Hugging Face folder its tokenizer.json, with what generation_config.json,
///   tokenizer_config.json and chat_template.jinja add (tokens that end a text, the chat template);
/// - of a GGUF file its metadata, rewritten as a tokenizer.json;
/// - of a llama2.c checkpoint tokNNN.bin of the model's vocabulary beside it, else tokenizer.bin,
/// else
///   the only tok*.bin there is.
/// A Hugging Face folder or GGUF file without a tokenizer has an empty one; a checkpoint without is
/// an error.
Result<Bytes> find_tokenizer(const std::string& path, const Model& model);

}  // namespace plena
