#include "plena/cli/model_options.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "plena/compiler/compile.h"
#include "plena/model/llama.h"
#include "plena/model/tokenizer.h"

namespace plena {

namespace {

namespace fs = std::filesystem;

bool is_tokenizer_name(const std::string& name) {
  return name.starts_with("tok") && name.ends_with(".bin");
}

// Files of a folder that `wanted` accepts by name, sorted.
template <class Wanted>
std::vector<fs::path> files_in(const fs::path& folder, Wanted&& wanted) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (wanted(at->path().filename().string())) found.push_back(at->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

// The checkpoint itself, or the only one of a folder.
Result<std::string> find_checkpoint(const std::string& model) {
  std::error_code ignored;
  if (!fs::is_directory(model, ignored)) return model;
  const auto checkpoints = files_in(model, [](const std::string& name) {
    return name.ends_with(".bin") && !is_tokenizer_name(name);
  });
  if (checkpoints.size() == 1) return checkpoints.front().string();
  return fail_with_hint(
      ErrorCode::Usage,
      fmt::format("{} is neither an image nor a folder with one checkpoint", model),
      checkpoints.empty() ? "a checkpoint is a .bin file of llama2.c" : "name one of its files");
}

// tokNNN.bin of the model's vocabulary, else tokenizer.bin, else the only tok*.bin there is.
Result<std::string> find_tokenizer(const std::string& checkpoint, std::uint32_t vocab) {
  const fs::path folder = fs::path(checkpoint).parent_path();
  std::error_code ignored;
  for (const auto& name : {fmt::format("tok{}.bin", vocab), std::string("tokenizer.bin")}) {
    if (fs::exists(folder / name, ignored)) return (folder / name).string();
  }
  const auto others = files_in(folder.empty() ? "." : folder, is_tokenizer_name);
  if (others.size() == 1) return others.front().string();
  return fail_with_hint(
      ErrorCode::Usage,
      fmt::format("{} beside {}", others.empty() ? "no tokenizer" : "several tokenizers",
                  checkpoint),
      "name it with --tokenizer FILE");
}

Result<Image> compile_checkpoint(const ModelOptions& options, const Context& context) {
  auto settings = resolve_settings(options.machine, context);
  if (!settings) return forward_error(settings);
  auto dialect = Dialect::parse(options.machine.isa);
  if (!dialect) return forward_error(dialect);
  auto checkpoint = find_checkpoint(options.model);
  if (!checkpoint) return forward_error(checkpoint);
  auto model = open_llama2c(*checkpoint);
  if (!model) return forward_error(model);
  const std::uint32_t vocab = model->config.vocab;
  auto tokenizer_path = options.tokenizer.empty() ? find_tokenizer(*checkpoint, vocab)
                                                  : Result<std::string>(options.tokenizer);
  if (!tokenizer_path) return forward_error(tokenizer_path);
  if (auto usable = Tokenizer::open(*tokenizer_path, vocab); !usable) return forward_error(usable);
  auto tokenizer = read_file(*tokenizer_path);
  if (!tokenizer) return forward_error(tokenizer);

  return compile(describe(*model),
                 {.settings = *std::move(settings),
                  .dialect = *std::move(dialect),
                  .model_name = fs::path(*checkpoint).filename().string(),
                  .tokenizer = *std::move(tokenizer),
                  .scales = options.scales == "search" ? ScaleRule::LeastError : ScaleRule::Floor});
}

Result<Image> open_image(const ModelOptions& options) {
  if (options.machine.named() || !options.tokenizer.empty() || !options.scales.empty()) {
    return fail_with_hint(
        ErrorCode::Usage,
        fmt::format("{} is an image, with settings and a tokenizer of its own", options.model),
        "compile the model anew for another machine: plena compile");
  }
  return load_image(options.model);
}

}  // namespace

void add_model_and_machine_options(CLI::App& command, ModelOptions& options) {
  command
      .add_option("MODEL", options.model,
                  "A llama2.c checkpoint, a folder with one, or an image folder")
      ->required();
  command
      .add_option("--tokenizer", options.tokenizer,
                  "Tokenizer of a checkpoint; default: tok*.bin or tokenizer.bin beside it")
      ->type_name("FILE");
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
}

Result<Image> open_model(const ModelOptions& options, const Context& context) {
  return is_image_folder(options.model) ? open_image(options)
                                        : compile_checkpoint(options, context);
}

}  // namespace plena
