// The compiler: a model in memory to an image that a machine can run.
#pragma once

#include <string>

#include "plena/base/error.h"
#include "plena/base/files.h"
#include "plena/compiler/image.h"
#include "plena/config/settings.h"
#include "plena/isa/dialect.h"
#include "plena/model/llama.h"
#include "plena/numerics/scale_search.h"

namespace plena {

struct CompileOptions {
  Settings settings;
  Dialect dialect;
  std::string model_name;               // file name of the source, for people
  Bytes tokenizer;                      // goes into the image as it is
  ScaleRule scales = ScaleRule::Floor;  // of weights and embedding, where they are of an Mx type
};

/// Compiles decoding of one token. The machine computes everything from the token's embedding to
/// the logits in base instructions; the host writes the integers the manifest names.
///
/// Errors: settings that contradict each other or that this compiler does not handle (VLEN other
/// than MLEN, two types for the KV cache, blocks that do not divide a row), a head wider than a
/// tile, and a model that does not fit one of the memories; each says what would satisfy it.
Result<Image> compile_llama(const LlamaModel& model, const CompileOptions& options);

}  // namespace plena
