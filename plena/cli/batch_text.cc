#include "plena/cli/batch_text.h"

#include <nlohmann/json.hpp>

#include "plena/cli/command_line.h"

namespace plena {

namespace {

using Json = nlohmann::ordered_json;

std::uint64_t tokens_fed(const BatchGeneration& generation) {
  std::uint64_t tokens = 0;
  for (const Generation& sequence : generation.sequences) tokens += sequence.ids.size();
  return tokens;
}

Json to_json(const BatchText& batch, const BatchGeneration& generation,
             const std::vector<std::string>& texts) {
  Json sequences = Json::array();
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const Generation& sequence = generation.sequences[i];
    sequences.push_back({{"ids", sequence.ids},
                         {"text", texts[i]},
                         {"sampled_ids", sequence.sampled},
                         {"end", generation_end_name(sequence.end)}});
  }
  return {{"model", batch.model},
          {"sequences", std::move(sequences)},
          {"steps", tokens_fed(generation)},
          {"host_seconds", generation.seconds}};
}

}  // namespace

Result<int> generate_batch_text(const BatchText& batch, Session& session,
                                const Tokenizer* tokenizer, const Context& context) {
  std::vector<Sampler> samplers;
  for (std::size_t i = 0; i < batch.prompts.size(); ++i) {
    SamplingOptions sampling = batch.sampling;
    sampling.seed += i;
    samplers.emplace_back(sampling);
  }
  std::vector<std::string> texts(batch.prompts.size());
  const auto generation =
      generate_batch(session, samplers, batch.prompts, batch.limits,
                     [&](std::size_t sequence, std::uint32_t previous, std::uint32_t id) {
                       if (tokenizer != nullptr) texts[sequence] += tokenizer->decode(previous, id);
                     });
  if (!generation) return tl::unexpected(generation.error());
  if (context.json) {
    // Byte tokens may leave half a character, which JSON cannot hold.
    print("{}\n",
          to_json(batch, *generation, texts).dump(2, ' ', false, Json::error_handler_t::replace));
    return 0;
  }
  const bool ids = batch.ids || tokenizer == nullptr;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    print("{}: {}\n", i + 1,
          ids ? fmt::format("{}", fmt::join(generation->sequences[i].ids, " ")) : texts[i]);
  }
  if (context.quiet) return 0;
  const auto tokens = static_cast<double>(tokens_fed(*generation));
  fmt::print(stderr, "{} tokens of {} texts in {:.0f} ms on this host, {:.0f} tokens/s\n", tokens,
             texts.size(), generation->seconds * 1e3, tokens / generation->seconds);
  return 0;
}

}  // namespace plena
