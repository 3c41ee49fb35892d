// The arguments that name a model: files to compile or an image that was compiled before.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "plena/cli/context.h"
#include "plena/cli/machine_options.h"
#include "plena/compiler/image.h"
#include "plena/model/tokenizer.h"

namespace plena {

struct ModelOptions {
  std::string model;      // what open_model() takes, or an image folder
  std::string tokenizer;  // empty: the model's own
  std::optional<std::uint64_t> random_weights;
  MachineOptions machine;
  std::uint32_t positions = 0;  // of the context to compile for; 0: all the model has
  std::uint32_t block = 0;      // tokens of a prompt taken at once, at most; 0: MLEN
  bool all_logits = false;      // of a block's tokens, not of the last one alone
  std::uint32_t sequences = 1;  // decoded side by side
  std::uint32_t layers = 0;     // the first so many of the model's; 0: all
  bool keep_order = false;      // of instructions, as the kernels emit them
  std::string scales;           // how weights are quantised: floor (empty: the same) or search
  std::string rotate;           // what is turned for it: off (empty: the same), auto or all
};

/// MODEL --tokenizer --random-weights --no-schedule --scales --rotate and the machine options.
void add_model_options(CLI::App& command, ModelOptions& options);
/// The same without --scales and --rotate, for a command with options of these names.
void add_model_and_machine_options(CLI::App& command, ModelOptions& options);

/// How much of an image is wanted, and where.
struct ImageRequest {
  bool contents = true;  // false: of a model only the program, without its weights
  std::string folder;    // whose file system the contents go to; empty: that of temporary files
};

/// --batch, for commands that decode several sequences or prepare for it.
CLI::Option* add_batch_option(CLI::App& command, ModelOptions& options);

/// The image, loaded or compiled. Machine options make no sense for an image, which has settings of
/// its own: naming some is an error.
Result<Image> open_model(const ModelOptions& options, const Context& context,
                         const ImageRequest& request = {});

/// The tokenizer an image carries; none is an error.
Result<Tokenizer> open_tokenizer(const Image& image);

}  // namespace plena
