// Several texts decoded side by side, for `plena generate --batch`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "plena/cli/context.h"
#include "plena/model/tokenizer.h"
#include "plena/runtime/generation.h"

namespace plena {

struct BatchText {
  std::string model;                                // for people
  std::vector<std::vector<std::uint32_t>> prompts;  // one a text
  SamplingOptions sampling;                         // of the first; each next one has the next seed
  GenerationLimits limits;
  bool ids = false;            // print ids instead of text
  bool answers_alone = false;  // leave the prompts out of the texts
};

struct BatchResult {
  BatchGeneration generation;
  std::vector<std::string> texts;  // one a prompt; empty ones without a tokenizer
};

/// Runs them to their ends. `tokenizer` may be null: then there are ids alone.
Result<BatchResult> run_batch(const BatchText& batch, Session& session, const Tokenizer* tokenizer);

nlohmann::ordered_json to_json(const BatchText& batch, const BatchResult& result);

/// Each text, or its ids, under its number.
void print_texts(const BatchText& batch, const BatchResult& result, const Tokenizer* tokenizer);

/// One line about the host's time.
std::string host_line(const BatchResult& result);

struct PromptLine {
  std::size_t line = 0;  // of the file, from 1 on
  std::string text;
};
/// The prompts of a file, one a line, blank lines left out; "-" is standard input.
Result<std::vector<PromptLine>> read_prompts(const std::string& path);

}  // namespace plena
