#include "plena/cli/model_options.h"

#include <filesystem>
#include <utility>

#include "plena/cli/interrupt.h"
#include "plena/cli/progress.h"
#include "plena/compiler/compile.h"
#include "plena/model/model_tokenizer.h"
#include "plena/model/open_model.h"

namespace plena {

namespace {

namespace fs = std::filesystem;

Result<Bytes> read_tokenizer(const ModelOptions& options, const Model& model) {
  if (options.tokenizer.empty()) return find_tokenizer(options.model, model);
  return read_file(options.tokenizer);
}

TurnRule turn_rule(std::string_view name) {
  if (name == "auto") return TurnRule::Auto;
  return name == "all" ? TurnRule::All : TurnRule::Off;
}

Result<Image> compile_model(const ModelOptions& options, const Context& context,
                            const ImageRequest& request) {
  auto settings = resolve_settings(options.machine, context);
  if (!settings) return forward_error(settings);
  auto dialect = Dialect::parse(options.machine.isa);
  if (!dialect) return forward_error(dialect);
  const auto file = find_model_file(options.model);
  if (!file) return tl::unexpected(file.error());
  auto model =
      open_model(*file, {.random_weights = options.random_weights, .layers = options.layers});
  if (!model) return forward_error(model);
  auto tokenizer = read_tokenizer(options, *model);
  if (!tokenizer) return forward_error(tokenizer);
  if (!tokenizer->empty()) {
    const std::string name = options.tokenizer.empty() ? *file : options.tokenizer;
    auto usable = Tokenizer::parse(*tokenizer, model->config.vocab, name);
    if (!usable) return forward_error(usable);
  }
  // A folder's name says more than config.json does.
  const bool in_folder = fs::path(*file).filename() == "config.json";
  const fs::path named = in_folder ? fs::absolute(*file).parent_path() : fs::path(*file);
  Progress progress(context, "weights");
  return compile(*model,
                 {.settings = *std::move(settings),
                  .dialect = *std::move(dialect),
                  .model_name = named.filename().string(),
                  .tokenizer = *std::move(tokenizer),
                  .context = options.positions,
                  .block = options.block,
                  .schedule = !options.keep_order,
                  .sequences = options.sequences,
                  .scales = options.scales == "search" ? ScaleRule::LeastError : ScaleRule::Floor,
                  .rotate = turn_rule(options.rotate),
                  .all_logits = options.all_logits,
                  .contents = request.contents,
                  .packing = {.folder = request.folder,
                              .interrupted = &interrupted(),
                              .progress = [&](std::uint64_t done, std::uint64_t all) {
                                progress.show(done, all);
                              }}});
}

Result<Image> open_image(const ModelOptions& options) {
  if (options.machine.named() || !options.tokenizer.empty() || !options.scales.empty() ||
      !options.rotate.empty() || options.random_weights || options.positions != 0 ||
      options.block != 0 || options.layers != 0 || options.keep_order) {
    return fail_with_hint(
        ErrorCode::Usage,
        fmt::format("{} is an image, with settings and a tokenizer of its own", options.model),
        "compile the model anew for another machine: plena compile");
  }
  return load_image(options.model);
}

constexpr std::uint32_t kMostSequences = 1024;

}  // namespace

void add_model_and_machine_options(CLI::App& command, ModelOptions& options) {
  command
      .add_option("MODEL", options.model,
                  "A Hugging Face folder, a GGUF file, a llama2.c checkpoint, or an image folder")
      ->required();
  command
      .add_option("--tokenizer", options.tokenizer,
                  "Tokenizer: tokenizer.json or llama2.c's; default: the model's own")
      ->type_name("FILE");
  command
      .add_option("--random-weights", options.random_weights,
                  "Make weights up from this seed: a config.json is enough")
      ->type_name("SEED");
  command
      .add_option("--context", options.positions,
                  "Positions to compile for; fewer than the model has leave room in the SRAMs")
      ->check(CLI::Range(1U, UINT32_MAX))
      ->type_name("N");
  command
      .add_option("--block", options.block,
                  "Tokens of a prompt to take at once, at most; default: MLEN, where they fit")
      ->check(CLI::Range(1U, UINT32_MAX))
      ->type_name("N");
  command
      .add_option("--layers", options.layers,
                  "Layers to compile, the first of the model's: for time and size, not for text")
      ->check(CLI::Range(1U, UINT32_MAX))
      ->type_name("N");
  command.add_flag("--no-schedule", options.keep_order,
                   "Leave instructions in the order of the kernels; the same bits, more cycles");
  add_machine_options(command, options.machine);
}

void add_model_options(CLI::App& command, ModelOptions& options) {
  add_model_and_machine_options(command, options);
  command
      .add_option("--scales", options.scales,
                  "Scales of quantised weights: floor (default), as the machine stores, or search, "
                  "those of least error")
      ->check(CLI::IsMember({"floor", "search"}))
      ->type_name("RULE");
  command
      .add_option("--rotate", options.rotate,
                  "Hadamard rotations folded into MX weights: off (default), auto, where their "
                  "error falls, or all")
      ->check(CLI::IsMember({"off", "auto", "all"}))
      ->type_name("RULE");
}

Result<Image> open_model(const ModelOptions& options, const Context& context,
                         const ImageRequest& request) {
  return is_image_folder(options.model) ? open_image(options)
                                        : compile_model(options, context, request);
}

Result<Tokenizer> open_tokenizer(const Image& image) {
  if (image.tokenizer.empty()) {
    return fail_with_hint(ErrorCode::Usage,
                          fmt::format("{} has no tokenizer", image.manifest.model),
                          "name one with --tokenizer FILE when it is compiled");
  }
  return Tokenizer::parse(image.tokenizer.bytes(), image.manifest.vocab, "the image's tokenizer");
}

CLI::Option* add_batch_option(CLI::App& command, ModelOptions& options) {
  return command
      .add_option("--batch", options.sequences,
                  "Sequences to decode side by side, each with the next seed; default 1")
      ->check(CLI::Range(1U, kMostSequences))
      ->type_name("N");
}

}  // namespace plena
