// plena generate MODEL: text out of the simulated machine.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include <nlohmann/json.hpp>

#include "plena/base/npy.h"
#include "plena/cli/batch_text.h"
#include "plena/cli/commands.h"
#include "plena/cli/engine_options.h"
#include "plena/cli/interrupt.h"
#include "plena/cli/machine_time_report.h"
#include "plena/cli/model_options.h"
#include "plena/cli/timeline_options.h"
#include "plena/cli/timing_options.h"
#include "plena/model/chat_template.h"
#include "plena/model/tokenizer.h"
#include "plena/runtime/generation.h"
#include "plena/timing/report_text.h"

namespace plena {

namespace {

using Json = nlohmann::ordered_json;
using Ids = std::vector<std::uint32_t>;

// The samplings of llama2.c, so that a model behaves as its users know it.
struct GenerateOptions {
  ModelOptions model;
  std::string prompt;
  bool chat = false;
  std::string system;
  std::optional<std::int64_t> tokens;
  SamplingOptions sampling{.temperature = 1.0F, .top_p = 0.9F, .seed = 0};
  bool ids = false;
  std::string prompt_ids_file;
  std::string prompts_file;
  std::string feed_file;
  std::string logits_file;
  TimingOptions timing;
  TimelineOptions timeline;
  bool statistics = false;
  EngineOptions engine;
};
constexpr std::int64_t kDefaultTokens = 256;

Status check_numbers(const GenerateOptions& options) {
  const SamplingOptions& sampling = options.sampling;
  if (options.tokens && (*options.tokens < 1 || *options.tokens > UINT32_MAX)) {
    return fail_with_hint(ErrorCode::Usage, fmt::format("--tokens is {}", *options.tokens),
                          "at least 1; the model's context ends a text anyway");
  }
  if (!std::isfinite(sampling.temperature) || sampling.temperature < 0) {
    return fail_with_hint(ErrorCode::Usage,
                          fmt::format("--temperature is {}", sampling.temperature),
                          "a number from 0 (always the likeliest token) up");
  }
  if (!options.prompts_file.empty() && options.model.sequences < 2) {
    return fail_with_hint(ErrorCode::Usage, "--prompts is for several texts side by side",
                          "--batch 2 or more");
  }
  if (!(sampling.top_p > 0 && sampling.top_p <= 1)) {
    return fail_with_hint(ErrorCode::Usage, fmt::format("--top-p is {}", sampling.top_p),
                          "a number above 0 and up to 1 (no limit)");
  }
  return {};
}

// An array of ids, or an object that has one, such as what --json prints.
Result<Ids> read_ids(const std::string& path) {
  const auto text = read_text(path);
  if (!text) return tl::unexpected(text.error());
  const auto json = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  const Json* list = &json;
  for (const char* key : {"ids", "tokens", "token_ids", "greedy_tokens"}) {
    if (list == &json && json.is_object() && json.contains(key)) list = &json.at(key);
  }
  Ids ids;
  if (list->is_array()) {
    for (const Json& item : *list) {
      if (!item.is_number_unsigned() || item.get<std::uint64_t>() > UINT32_MAX) break;
      ids.push_back(item.get<std::uint32_t>());
    }
  }
  if (!list->is_array() || list->empty() || ids.size() != list->size()) {
    return fail_with_hint(ErrorCode::Format, fmt::format("{} holds no token ids", path),
                          "a JSON array of ids, or an object whose \"ids\" is one");
  }
  return ids;
}

// What a run leaves behind, whether its tokens were sampled or fed.
struct Outcome {
  Ids ids;  // fed to the machine, one step each
  std::string text;
  std::vector<float> logits;  // [ids, vocab], where asked for
  std::optional<Generation> generation;
  std::optional<FeedReport> feed;
  std::size_t prompt = 1;  // runs until the first token was sampled
  std::size_t prompt_ids = 0;
  std::size_t shown = 0;  // tokens that joined the text, those of the prompt included
  std::optional<MachineTime> machine;
  std::optional<TimingReport> timing;

  [[nodiscard]] double seconds() const { return generation ? generation->seconds : feed->seconds; }
  [[nodiscard]] double tokens_per_second() const {
    return generation ? generation->tokens_per_second() : feed->tokens_per_second();
  }
};

// The prompt's tokens: ids as they are, the text, or with --chat what the model's template makes of
// it.
Result<Ids> encode_prompt(const GenerateOptions& options, const std::string& prompt_text,
                          const Tokenizer& tokenizer) {
  if (!options.chat) {
    Ids ids = tokenizer.encode(prompt_text);
    if (!ids.empty()) return ids;
    return fail_with_hint(ErrorCode::Usage, "an empty prompt",
                          "this model has no token that begins a text: give it a --prompt");
  }
  if (tokenizer.chat_template().empty()) {
    return fail_with_hint(ErrorCode::Usage,
                          fmt::format("{} has no chat template", options.model.model),
                          "without --chat it goes on from a --prompt");
  }
  std::vector<ChatMessage> messages;
  if (!options.system.empty()) messages.push_back({"system", options.system});
  messages.push_back({"user", prompt_text});
  const SpecialTokens& special = tokenizer.special();
  const auto text = [&](std::optional<std::uint32_t> id) {
    return id ? std::string(tokenizer.piece(*id)) : std::string();
  };
  const auto prompt =
      render_chat(tokenizer.chat_template(), messages,
                  {.begin_text = text(special.begin),
                   .end_text = special.ends.empty() ? std::string() : text(special.ends.front())});
  if (!prompt) return tl::unexpected(prompt.error());
  return tokenizer.encode_inner(*prompt);
}

Result<Ids> make_prompt(const GenerateOptions& options, const Tokenizer* tokenizer) {
  if (!options.prompt_ids_file.empty()) return read_ids(options.prompt_ids_file);
  return encode_prompt(options, options.prompt, *tokenizer);
}

// The prompts of a batch: those of a file, or the one prompt for every sequence.
Result<std::vector<Ids>> make_prompts(const GenerateOptions& options, const Tokenizer* tokenizer,
                                      std::uint32_t most) {
  if (options.prompts_file.empty()) {
    auto prompt = make_prompt(options, tokenizer);
    if (!prompt) return forward_error(prompt);
    return std::vector<Ids>(options.model.sequences, *prompt);
  }
  auto lines = read_prompts(options.prompts_file);
  if (!lines) return forward_error(lines);
  std::vector<Ids> prompts;
  for (const PromptLine& line : *lines) {
    auto prompt = encode_prompt(options, line.text, *tokenizer);
    if (!prompt) return forward_error(prompt);
    if (prompt->size() > most) {
      return fail(ErrorCode::Usage, "{}, line {}: {} tokens do not fit the model's context of {}",
                  options.prompts_file, line.line, prompt->size(), most);
    }
    prompts.push_back(*std::move(prompt));
  }
  return prompts;
}

// Streams text, or ids, to stdout as the machine makes them; of a chat the answer alone.
GenerationHooks make_hooks(const GenerateOptions& options, const Context& context,
                           const Tokenizer* tokenizer, Outcome& outcome) {
  GenerationHooks hooks;
  const bool show_ids = options.ids || tokenizer == nullptr;
  if (tokenizer != nullptr)
    hooks.token = [&, tokenizer](std::uint32_t previous, std::uint32_t id) {
      // The prompt's tokens come first, before any was sampled.
      if (options.chat && outcome.shown++ < outcome.prompt_ids) return;
      const auto piece = tokenizer->decode(previous, id);
      outcome.text += piece;
      if (context.json || options.ids || piece.empty()) return;
      print(piece);
      flush();
    };
  hooks.all_logits = !options.logits_file.empty();
  hooks.step = [&, show_ids](std::uint32_t id, std::span<const float> logits) {
    if (!options.logits_file.empty()) {
      outcome.logits.insert(outcome.logits.end(), logits.begin(), logits.end());
    }
    if (!context.json && show_ids) {
      print("{}{}", outcome.ids.empty() ? "" : " ", id);
      flush();
    }
    outcome.ids.push_back(id);
  };
  return hooks;
}

Status run_session(const GenerateOptions& options, const Tokenizer* tokenizer, Session& session,
                   const GenerationHooks& hooks, Outcome& outcome) {
  if (!options.feed_file.empty()) {
    auto ids = read_ids(options.feed_file);
    if (!ids) return tl::unexpected(ids.error());
    if (options.tokens) ids->resize(std::min<std::size_t>(ids->size(), *options.tokens));
    auto report = feed(session, *ids, hooks);
    if (!report) return tl::unexpected(report.error());
    outcome.feed = *report;
    return {};
  }
  Sampler sampler(options.sampling);
  const auto prompt = make_prompt(options, tokenizer);
  if (!prompt) return tl::unexpected(prompt.error());
  outcome.prompt_ids = prompt->size();
  auto generation =
      generate(session, sampler, *prompt,
               {.max_tokens = static_cast<std::uint32_t>(options.tokens.value_or(kDefaultTokens)),
                .ends = tokenizer != nullptr ? tokenizer->special().ends : Ids()},
               hooks);
  if (!generation) return tl::unexpected(generation.error());
  outcome.prompt = generation->prompt_runs;
  outcome.generation = *std::move(generation);
  return {};
}

// The clock of a run with --timing, --trace or --report, and what draws it; both empty otherwise.
struct Clockwork {
  std::unique_ptr<Timing> clock;
  std::unique_ptr<Timeline> timeline;
};

Result<Clockwork> start_clock(const GenerateOptions& options, Session& session) {
  const Machine& machine = session.machine();
  auto clock = make_clock(with_clock_for(options.timeline, options.timing), session.instructions(),
                          machine.settings, machine.dialect);
  if (!clock) return forward_error(clock);
  Clockwork works{std::move(*clock), nullptr};
  if (works.clock == nullptr) {
    if (!options.statistics) return works;
    return fail_with_hint(ErrorCode::Usage, "--stats counts nothing without a clock",
                          "add --timing pipelined");
  }
  auto timeline = Timeline::attach(options.timeline, *works.clock, session.program(),
                                   machine.settings, machine.dialect, options.model.model);
  if (!timeline) return forward_error(timeline);
  works.timeline = std::move(*timeline);
  session.set_clock(works.clock.get());
  return works;
}

Status stop_clock(Clockwork& works, const Session& session, Outcome& outcome) {
  if (works.timeline) {
    if (auto finished = works.timeline->finish(); !finished) return finished;
  }
  if (works.clock == nullptr || session.step_ends().empty()) return {};
  outcome.timing = make_report(*works.clock, session.machine().settings, session.machine().dialect,
                               session.program().regions);
  outcome.machine = machine_time(session.step_ends(), outcome.prompt, outcome.timing->clock_mhz);
  return {};
}

Json to_json(const Outcome& outcome, const std::string& model) {
  Json json = {{"model", model}, {"ids", outcome.ids}, {"text", outcome.text}};
  if (outcome.generation) {
    json["sampled_ids"] = outcome.generation->sampled;
    json["end"] = generation_end_name(outcome.generation->end);
  } else {
    json["perplexity"] = outcome.feed->perplexity();
    json["scored"] = outcome.feed->scored;
    json["top1_hits"] = outcome.feed->top1_hits;
  }
  json["steps"] = outcome.ids.size();
  json["host_seconds"] = outcome.seconds();
  json["host_tokens_per_second"] = outcome.tokens_per_second();
  if (outcome.machine) json["machine"] = to_json(*outcome.machine, *outcome.timing);
  return json;
}

void print_summary(const Outcome& outcome) {
  fmt::print(stderr, "{} tokens in {:.0f} ms on this host, {:.0f} tokens/s\n", outcome.ids.size(),
             outcome.seconds() * 1e3, outcome.tokens_per_second());
  if (outcome.machine) fmt::print(stderr, "{}", to_text(*outcome.machine, *outcome.timing));
  if (!outcome.feed || outcome.feed->scored == 0) return;
  fmt::print(stderr, "perplexity {:.4f}, the fed token was the likeliest at {:.1f} %\n",
             outcome.feed->perplexity(), 100 * outcome.feed->top1_share());
}

// None where the image has none and ids are given: then ids come out as well.
Result<std::optional<Tokenizer>> open_tokenizer_for(const GenerateOptions& options,
                                                    const Image& image) {
  const bool ids_given = !options.feed_file.empty() || !options.prompt_ids_file.empty();
  if (image.tokenizer.empty() && ids_given) return std::optional<Tokenizer>();
  auto tokenizer = open_tokenizer(image);
  if (!tokenizer) return forward_error(tokenizer);
  return std::optional<Tokenizer>(*std::move(tokenizer));
}

void print_batch(const GenerateOptions& options, const BatchText& batch, const BatchResult& result,
                 const Tokenizer* tokenizer, const Outcome& outcome, const Session& session,
                 const Context& context) {
  const Dialect& dialect = session.machine().dialect;
  if (context.json) {
    // Byte tokens may leave half a character, which JSON cannot hold.
    Json json = to_json(batch, result);
    if (outcome.machine) json["machine"] = to_json(*outcome.machine, *outcome.timing);
    if (outcome.timing) json["timing"] = to_json(*outcome.timing, session.program(), dialect);
    return print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
  }
  print_texts(batch, result, tokenizer);
  if (context.quiet) return;
  fmt::print(stderr, "{}", host_line(result));
  if (outcome.machine) fmt::print(stderr, "{}", to_text(*outcome.machine, *outcome.timing));
  if (options.statistics) {
    fmt::print(stderr, "{}", to_text(*outcome.timing, session.program(), dialect));
  }
}

Result<int> generate_side_by_side(const GenerateOptions& options, Session& session,
                                  const Tokenizer* tokenizer, const std::string& assembly,
                                  const Context& context) {
  if (session.sequences() != options.model.sequences) {
    return fail_with_hint(
        ErrorCode::Usage,
        fmt::format("--batch is {}, but {} decodes {} side by side", options.model.sequences,
                    options.model.model, session.sequences()),
        fmt::format("plena compile --batch {} makes an image that does", options.model.sequences));
  }
  auto prompts = make_prompts(options, tokenizer, session.manifest().context);
  if (!prompts) return forward_error(prompts);
  const BatchText batch{
      .model = session.manifest().model,
      .prompts = *std::move(prompts),
      .sampling = options.sampling,
      .limits = {.max_tokens = static_cast<std::uint32_t>(options.tokens.value_or(kDefaultTokens)),
                 .ends = tokenizer != nullptr ? tokenizer->special().ends : Ids()},
      .ids = options.ids,
      .answers_alone = options.chat};
  auto works = start_clock(options, session);
  if (!works) return forward_error(works);
  const auto result = run_batch(batch, session, tokenizer);
  Outcome outcome;
  if (result) outcome.prompt = result->generation.prompt_runs;
  auto stopped = stop_clock(*works, session, outcome);
  if (!result) return tl::unexpected(result.error());
  if (!stopped) return tl::unexpected(stopped.error());
  if (outcome.machine) outcome.machine->tokens = result->generation.common_tokens;
  if (works->timeline) {
    auto written = works->timeline->write_report(assembly);
    if (!written) return forward_error(written);
  }
  print_batch(options, batch, *result, tokenizer, outcome, session, context);
  return 0;
}

Result<int> generate_text(const GenerateOptions& options, const Context& context) {
  if (auto checked = check_numbers(options); !checked) return tl::unexpected(checked.error());
  const auto image = open_model(options.model, context);
  if (!image) return tl::unexpected(image.error());
  auto tokenizer = open_tokenizer_for(options, *image);
  if (!tokenizer) return forward_error(tokenizer);
  const Tokenizer* const texts = *tokenizer ? &**tokenizer : nullptr;
  RunOptions run_options;
  run_options.interrupted = &interrupted();
  run_options.fuse = options.engine.fuse;
  Workers workers(options.engine.threads);
  run_options.workers = &workers;
  auto session = Session::create(*image, run_options, options.engine.tile_cache_bytes());
  if (!session) return tl::unexpected(session.error());
  if (options.model.sequences > 1) {
    return generate_side_by_side(options, *session, texts, image->assembly, context);
  }
  auto works = start_clock(options, *session);
  if (!works) return forward_error(works);

  Outcome outcome;
  const auto hooks = make_hooks(options, context, texts, outcome);
  const auto done = run_session(options, texts, *session, hooks, outcome);
  if (!context.json && !outcome.ids.empty()) print("\n");
  flush();
  auto stopped = stop_clock(*works, *session, outcome);
  if (!done) return tl::unexpected(done.error());
  if (!stopped) return tl::unexpected(stopped.error());
  if (works->timeline) {
    auto written = works->timeline->write_report(image->assembly);
    if (!written) return forward_error(written);
  }

  if (!options.logits_file.empty()) {
    const std::uint64_t shape[] = {outcome.ids.size(), image->manifest.vocab};
    auto written = write_npy<float>(options.logits_file, shape, outcome.logits);
    if (!written) return tl::unexpected(written.error());
  }
  if (context.json) {
    // Byte tokens may leave half a character, which JSON cannot hold.
    Json json = to_json(outcome, image->manifest.model);
    if (outcome.timing)
      json["timing"] = to_json(*outcome.timing, session->program(), session->machine().dialect);
    print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
  } else if (!context.quiet) {
    print_summary(outcome);
    if (options.statistics)
      fmt::print(stderr, "{}",
                 to_text(*outcome.timing, session->program(), session->machine().dialect));
  }
  return 0;
}

}  // namespace

void add_generate_command(CLI::App& app, Context& context) {
  auto options = std::make_shared<GenerateOptions>();
  CLI::App* command = app.add_subcommand("generate", "Text out of the simulated machine");
  add_model_options(*command, options->model);
  auto* prompt =
      command->add_option("--prompt", options->prompt, "Text to go on from")->type_name("TEXT");
  auto* chat = command->add_flag(
      "--chat", options->chat, "The prompt is a message; print the answer (needs a chat template)");
  command->add_option("--system", options->system, "What the model is told before a chat")
      ->type_name("TEXT")
      ->needs(chat);
  command
      ->add_option("--prompt-ids", options->prompt_ids_file,
                   "Token ids to go on from; without a tokenizer ids come out as well")
      ->type_name("IDS.json")
      ->excludes(prompt)
      ->excludes(chat);
  command->add_option("--tokens", options->tokens, "Tokens to sample, or to feed; default 256")
      ->type_name("N");
  command
      ->add_option("--temperature", options->sampling.temperature,
                   "0: always the likeliest token; default 1.0")
      ->type_name("T");
  command
      ->add_option("--top-p", options->sampling.top_p,
                   "Sample among the likeliest tokens of this total probability; default 0.9")
      ->type_name("P");
  command->add_option("--seed", options->sampling.seed, "Another seed, another text; default 0")
      ->type_name("S");
  auto* batch = add_batch_option(*command, options->model);
  command
      ->add_option("--prompts", options->prompts_file,
                   "Prompts of a batch, one a line (- is standard input), each with the next seed; "
                   "those that find no place wait for a text to end")
      ->type_name("FILE")
      ->needs(batch)
      ->excludes(prompt)
      ->excludes("--prompt-ids");
  command->add_flag("--ids", options->ids, "Print the ids fed to the machine instead of text");
  command
      ->add_option("--feed", options->feed_file,
                   "Feed these ids instead of sampling, and report their perplexity")
      ->type_name("IDS.json")
      ->excludes(prompt)
      ->excludes(chat)
      ->excludes(batch);
  add_timing_options(*command, options->timing);
  add_timeline_options(*command, options->timeline);
  command
      ->add_flag("--stats", options->statistics,
                 "Say where the machine's cycles went, by cause, instruction, loop and operator")
      ->group("Timing");
  command->add_option("--logits", options->logits_file, "Save the logits of every step, f32")
      ->type_name("FILE.npy")
      ->excludes(batch);
  add_engine_options(*command, options->engine);
  command->callback([&context, options] {
    context.body = [&context, options] { return generate_text(*options, context); };
  });
}

}  // namespace plena
