// plena compile MODEL -o DIR: a model file to an image folder.
#include <filesystem>
#include <memory>

#include <nlohmann/json.hpp>

#include "plena/cli/commands.h"
#include "plena/cli/model_options.h"

namespace plena {

namespace {

struct CompileCommandOptions {
  ModelOptions model;
  std::string folder;
  std::string stage;  // to print instead: graph, plan or asm
};

// The nearest folder around `path` that is there, so that what lies in it can become part of
// `path`.
std::string folder_around(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  fs::path folder = fs::absolute(path, ignored).lexically_normal().parent_path();
  while (!fs::is_directory(folder, ignored) && folder.has_relative_path()) {
    folder = folder.parent_path();
  }
  return folder.string();
}

std::uint64_t hbm_bytes(const Image& image) {
  std::uint64_t bytes = 0;
  for (const HbmSegment& segment : image.hbm) bytes += segment.bytes.size();
  return bytes;
}

// An image that was compiled before does not know any more.
bool rotates(const ModelOptions& model) {
  return !model.rotate.empty() && model.rotate != "off";
}

Result<int> print_stage(const CompileCommandOptions& options, const Image& image) {
  const std::string& text = options.stage == "graph"  ? image.graph
                            : options.stage == "plan" ? image.plan
                                                      : image.assembly;
  if (text.empty()) {
    return fail_with_hint(
        ErrorCode::Usage,
        fmt::format("{} is an image and keeps no {}", options.model.model, options.stage),
        "name the model it was compiled from");
  }
  print("{}", text);
  return 0;
}

Result<int> compile_model(const CompileCommandOptions& options, const Context& context) {
  if (!options.stage.empty()) {
    const auto program = open_model(options.model, context, {.contents = false});
    if (!program) return tl::unexpected(program.error());
    return print_stage(options, *program);
  }
  if (options.folder.empty()) {
    return fail_with_hint(ErrorCode::Usage, "there is nowhere to write the image",
                          "-o DIR names a folder; --emit STAGE prints instead");
  }
  // Nobody waits for a large model to hear that the folder is the wrong one.
  if (auto usable = check_image_target(options.folder); !usable) {
    return tl::unexpected(usable.error());
  }
  const auto image = open_model(options.model, context, {.folder = folder_around(options.folder)});
  if (!image) return tl::unexpected(image.error());
  if (auto saved = save_image(*image, options.folder); !saved) {
    return tl::unexpected(saved.error());
  }
  if (context.json) {
    nlohmann::ordered_json report = {{"image", options.folder},
                                     {"model", image->manifest.model},
                                     {"program_words", image->program.words.size()},
                                     {"hbm_bytes", hbm_bytes(*image)},
                                     {"fp_mem_entries", image->fp_mem.size()},
                                     {"int_mem_entries", image->int_mem.size()},
                                     {"vocab", image->manifest.vocab},
                                     {"context", image->manifest.context}};
    if (rotates(options.model)) report["rotated"] = image->turned;
    print("{}\n", report.dump(2));
  } else if (!context.quiet) {
    fmt::print(stderr, "{}: {} words, {} bytes of HBM, {} positions\n", options.folder,
               image->program.words.size(), hbm_bytes(*image), image->manifest.context);
    if (rotates(options.model)) fmt::print(stderr, "rotated: {}\n", image->turned);
  }
  return 0;
}

}  // namespace

void add_compile_command(CLI::App& app, Context& context) {
  auto options = std::make_shared<CompileCommandOptions>();
  CLI::App* command = app.add_subcommand("compile", "Compile a model to an image folder");
  add_model_options(*command, options->model);
  add_batch_option(*command, options->model);
  command->add_option("-o,--output", options->folder, "Folder to write")->type_name("DIR");
  command
      ->add_option("--emit", options->stage,
                   "Print a stage instead: the operator graph, tiles and memory plan, or assembly")
      ->check(CLI::IsMember({"graph", "plan", "asm"}));
  command->callback([&context, options] {
    context.body = [&context, options] { return compile_model(*options, context); };
  });
}

}  // namespace plena
