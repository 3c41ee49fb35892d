// Several texts decoded side by side, for `plena generate --batch`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plena/cli/context.h"
#include "plena/model/tokenizer.h"
#include "plena/runtime/generation.h"

namespace plena {

struct BatchText {
  std::string model;                                // for people
  std::vector<std::vector<std::uint32_t>> prompts;  // one a sequence
  SamplingOptions sampling;                         // of the first; each next one has the next seed
  GenerationLimits limits;
  bool ids = false;  // print ids instead of text
};

/// Runs them to their ends and prints each under its number, or all as one object with --json.
/// `tokenizer` may be null: then ids come out.
Result<int> generate_batch_text(const BatchText& batch, Session& session,
                                const Tokenizer* tokenizer, const Context& context);

}  // namespace plena
