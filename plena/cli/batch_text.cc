#include "plena/cli/batch_text.h"

#include <sstream>

#include "plena/base/files.h"
#include "plena/cli/command_line.h"

namespace plena {

namespace {

using Json = nlohmann::ordered_json;

std::uint64_t tokens_fed(const BatchGeneration& generation) {
  std::uint64_t tokens = 0;
  for (const Generation& sequence : generation.sequences) tokens += sequence.ids.size();
  return tokens;
}

}  // namespace

Result<BatchResult> run_batch(const BatchText& batch, Session& session,
                              const Tokenizer* tokenizer) {
  std::vector<Sampler> samplers;
  for (std::size_t i = 0; i < batch.prompts.size(); ++i) {
    SamplingOptions sampling = batch.sampling;
    sampling.seed += i;
    samplers.emplace_back(sampling);
  }
  BatchResult result{.generation = {}, .texts = std::vector<std::string>(batch.prompts.size())};
  std::vector<std::size_t> heard(batch.prompts.size(), 0);  // tokens, the prompt's first
  auto generation =
      generate_batch(session, samplers, batch.prompts, batch.limits,
                     [&](std::size_t prompt, std::uint32_t previous, std::uint32_t id) {
                       const bool asked = heard[prompt]++ < batch.prompts[prompt].size();
                       if (tokenizer == nullptr || (asked && batch.answers_alone)) return;
                       result.texts[prompt] += tokenizer->decode(previous, id);
                     });
  if (!generation) return tl::unexpected(generation.error());
  result.generation = *std::move(generation);
  return result;
}

Json to_json(const BatchText& batch, const BatchResult& result) {
  Json sequences = Json::array();
  for (std::size_t i = 0; i < result.texts.size(); ++i) {
    const Generation& sequence = result.generation.sequences[i];
    sequences.push_back({{"ids", sequence.ids},
                         {"text", result.texts[i]},
                         {"sampled_ids", sequence.sampled},
                         {"end", generation_end_name(sequence.end)}});
  }
  return {{"model", batch.model},
          {"sequences", std::move(sequences)},
          {"steps", tokens_fed(result.generation)},
          {"host_seconds", result.generation.seconds}};
}

void print_texts(const BatchText& batch, const BatchResult& result, const Tokenizer* tokenizer) {
  const bool ids = batch.ids || tokenizer == nullptr;
  for (std::size_t i = 0; i < result.texts.size(); ++i) {
    print("{}: {}\n", i + 1,
          ids ? fmt::format("{}", fmt::join(result.generation.sequences[i].ids, " "))
              : result.texts[i]);
  }
}

std::string host_line(const BatchResult& result) {
  const auto tokens = static_cast<double>(tokens_fed(result.generation));
  return fmt::format("{} tokens of {} texts in {:.0f} ms on this host, {:.0f} tokens/s\n", tokens,
                     result.texts.size(), result.generation.seconds * 1e3,
                     tokens / result.generation.seconds);
}

Result<std::vector<PromptLine>> read_prompts(const std::string& path) {
  const auto text = read_text(path == "-" ? "/dev/stdin" : path);
  if (!text) return tl::unexpected(text.error());
  std::vector<PromptLine> prompts;
  std::istringstream lines(*text);
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.find_first_not_of(" \t") == std::string::npos) continue;
    prompts.push_back({number, std::move(line)});
  }
  if (!prompts.empty()) return prompts;
  return fail_with_hint(ErrorCode::Usage,
                        fmt::format("{} has no prompt", path == "-" ? "standard input" : path),
                        "one a line");
}

}  // namespace plena
