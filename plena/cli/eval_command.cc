// plena eval MODEL --text FILE: perplexity, for one machine or a table of number formats.
#include <algorithm>
#include <memory>

#include <nlohmann/json.hpp>

#include "plena/cli/commands.h"
#include "plena/cli/interrupt.h"
#include "plena/cli/model_options.h"
#include "plena/cli/progress.h"
#include "plena/model/tokenizer.h"
#include "plena/runtime/perplexity.h"

namespace plena {

namespace {

using Json = nlohmann::ordered_json;
using Ids = std::vector<std::uint32_t>;

constexpr std::string_view kSeparator = "<|endoftext|>";

struct EvalOptions {
  ModelOptions model;
  std::string text;
  SlidingWindow window;
  // Formats to compare; empty: the settings' own.
  std::vector<std::string> weights, kv, scales, rotate;
  std::vector<std::uint32_t> blocks;  // of weights that name none

  [[nodiscard]] bool compares() const {
    return !weights.empty() || !blocks.empty() || !kv.empty() || !scales.empty() || !rotate.empty();
  }
};

// One row of the table: what is set beyond the machine options. Empty: as it is.
struct Format {
  std::string weights, kv, scales, rotate;
};

struct Row {
  Format format;  // names of the types, resolved
  std::string rotated;
  PerplexityReport report;
};

std::vector<std::string> or_default(const std::vector<std::string>& values) {
  return values.empty() ? std::vector<std::string>{""} : values;
}

// The types of weights, those with scales in each of the block sizes unless they name their own.
Result<std::vector<std::string>> weights_of(const EvalOptions& options, const Context& context) {
  if (options.blocks.empty()) return or_default(options.weights);
  std::vector<std::string> all;
  const auto add_blocks = [&](DataType type) {
    for (const std::uint32_t block : options.blocks) {
      all.push_back(DataType::mx(type.element, block).name());
    }
  };
  std::vector<std::string> names = options.weights;
  if (names.empty()) {
    auto settings = resolve_settings(options.model.machine, context);
    if (!settings) return forward_error(settings);
    names.push_back(settings->hbm_m_weight_type.name());
  }
  for (const std::string& name : names) {
    auto type = DataType::parse(name);
    if (!type) return forward_error(type);
    // The settings' own block is one of many here.
    const bool names_block = !options.weights.empty() && name.find(':') != std::string::npos;
    if (type->is_mx() && !names_block) {
      add_blocks(*type);
    } else {
      all.push_back(name);
    }
  }
  return all;
}

// Every combination, the rotations changing fastest. A plain type has no scales to choose or to
// rotate for: the first rule stands for all.
std::vector<Format> formats_of(const EvalOptions& options, const std::vector<std::string>& types) {
  std::vector<Format> formats;
  for (const auto& kv : or_default(options.kv)) {
    for (const auto& weights : types) {
      const auto type = DataType::parse(weights);
      const bool plain = !weights.empty() && type && !type->is_mx();
      for (const auto& scales : or_default(options.scales)) {
        for (const auto& rotate : or_default(options.rotate)) {
          formats.push_back({weights, kv, scales, rotate});
          if (plain) break;
        }
        if (plain) break;
      }
    }
  }
  return formats;
}

ModelOptions with_format(ModelOptions model, const Format& format) {
  auto& set = model.machine.assignments;
  if (!format.weights.empty()) set.push_back("HBM_M_WEIGHT_TYPE=" + format.weights);
  if (!format.kv.empty()) {
    set.push_back("HBM_M_KV_TYPE=" + format.kv);
    set.push_back("HBM_V_KV_TYPE=" + format.kv);
  }
  if (!format.scales.empty()) model.scales = format.scales;
  if (!format.rotate.empty()) model.rotate = format.rotate;
  return model;
}

// Documents between lines `<|endoftext|>`, without the newline before that line or at the end.
std::vector<std::string_view> split_documents(std::string_view text) {
  std::vector<std::string_view> documents;
  std::size_t begin = 0;
  const auto add = [&](std::size_t end) {
    std::string_view document = text.substr(begin, end - begin);
    if (document.ends_with('\n')) document.remove_suffix(1);
    if (!document.empty()) documents.push_back(document);
  };
  for (std::size_t line = 0; line < text.size();) {
    const std::size_t end = std::min(text.find('\n', line), text.size());
    if (text.substr(line, end - line) == kSeparator) {
      add(line);
      begin = std::min(end + 1, text.size());
    }
    line = end + 1;
  }
  add(text.size());
  return documents;
}

std::vector<Ids> encode_documents(std::string_view text, const Tokenizer& tokenizer) {
  std::vector<Ids> documents;
  for (const std::string_view document : split_documents(text)) {
    documents.push_back(tokenizer.encode(document));
  }
  return documents;
}

Result<Row> evaluate(const EvalOptions& options, const Format& format, std::string_view text,
                     const Context& context) {
  ModelOptions model = with_format(options.model, format);
  model.all_logits = true;
  const auto image = open_model(model, context);
  if (!image) return tl::unexpected(image.error());
  const auto tokenizer = open_tokenizer(*image);
  if (!tokenizer) return tl::unexpected(tokenizer.error());
  RunOptions run_options;
  run_options.interrupted = &interrupted();
  auto session = Session::create(*image, run_options);
  if (!session) return tl::unexpected(session.error());

  const auto documents = encode_documents(text, *tokenizer);
  Row row{{image->settings.hbm_m_weight_type.name(), image->settings.hbm_m_kv_type.name(),
           format.scales.empty() ? options.model.scales : format.scales, format.rotate},
          image->turned,
          {}};
  Progress progress(context, row.format.weights,
                    count_tokens(documents, options.window, image->manifest.context));
  auto report = score(*session, documents, options.window,
                      [&](std::uint64_t tokens) { progress.step(tokens); });
  if (!report) return forward_error(report);
  if (report->scored == 0) {
    return fail_with_hint(ErrorCode::Format, fmt::format("{} has nothing to score", options.text),
                          "a document needs at least one token after BOS");
  }
  row.report = *report;
  return row;
}

std::string scales_name(const Format& format) {
  const auto type = DataType::parse(format.weights);
  if (type && !type->is_mx()) return "-";
  return format.scales.empty() ? "floor" : format.scales;
}

Json to_json(const Row& row) {
  const PerplexityReport& report = row.report;
  return {{"weights", row.format.weights},
          {"kv", row.format.kv},
          {"scales", scales_name(row.format)},
          {"rotate", row.format.rotate.empty() ? "off" : row.format.rotate},
          {"rotated", row.rotated},
          {"perplexity", report.perplexity()},
          {"negative_log_likelihood", report.negative_log_likelihood},
          {"documents", report.documents},
          {"scored", report.scored},
          {"top1_hits", report.top1_hits},
          {"steps", report.steps},
          {"host_seconds", report.seconds},
          {"host_tokens_per_second", report.tokens_per_second()}};
}

// What rotations turned is a column where they are compared.
void print_table(const std::vector<Row>& rows, bool rotations) {
  std::size_t weights = 7;
  std::size_t kv = 2;
  std::size_t rotated = 7;
  for (const Row& row : rows) {
    weights = std::max(weights, row.format.weights.size());
    kv = std::max(kv, row.format.kv.size());
    rotated = std::max(rotated, row.rotated.size());
  }
  const auto rotation = [&](std::string_view rule, std::string_view what) {
    return rotations ? fmt::format("{:<6}  {:<{}}  ", rule, what, rotated) : "";
  };
  const double first = rows.front().report.perplexity();
  print("{:<{}}  {:<{}}  {:<6}  {}{:>10}  {:>8}  {:>6}\n", "weights", weights, "KV", kv, "scales",
        rotation("rotate", "rotated"), "perplexity", "change", "top-1");
  for (const Row& row : rows) {
    const double perplexity = row.report.perplexity();
    print("{:<{}}  {:<{}}  {:<6}  {}{:>10.4f}  {:>+6.2f} %  {:>4.1f} %\n", row.format.weights,
          weights, row.format.kv, kv, scales_name(row.format),
          rotation(row.format.rotate, row.rotated), perplexity, 100 * (perplexity / first - 1),
          100 * row.report.top1_share());
  }
}

Status check_formats(const EvalOptions& options) {
  for (const auto* types : {&options.weights, &options.kv}) {
    for (const auto& type : *types) {
      if (auto known = DataType::parse(type); !known) return forward_error(known);
    }
  }
  if (options.compares() && is_image_folder(options.model.model)) {
    return fail_with_hint(ErrorCode::Usage,
                          fmt::format("{} is an image, its formats are fixed", options.model.model),
                          "name the model it was compiled from");
  }
  return {};
}

Result<int> evaluate_formats(const EvalOptions& options, const Context& context) {
  if (auto checked = check_formats(options); !checked) return tl::unexpected(checked.error());
  const auto text = read_text(options.text);
  if (!text) return tl::unexpected(text.error());
  const auto types = weights_of(options, context);
  if (!types) return tl::unexpected(types.error());
  std::vector<Row> rows;
  for (const Format& format : formats_of(options, *types)) {
    auto row = evaluate(options, format, *text, context);
    if (!row) return forward_error(row);
    rows.push_back(*std::move(row));
  }
  if (context.json) {
    Json json = {{"model", options.model.model}, {"text", options.text}};
    for (const Row& row : rows) json["formats"].push_back(to_json(row));
    print("{}\n", json.dump(2));
    return 0;
  }
  print_table(rows, !options.rotate.empty());
  const PerplexityReport& report = rows.back().report;
  if (!context.quiet) {
    fmt::print(stderr, "{} documents, {} tokens scored, {} fed a format, {:.0f} tokens/s\n",
               report.documents, report.scored, report.steps, report.tokens_per_second());
  }
  return 0;
}

}  // namespace

void add_eval_command(CLI::App& app, Context& context) {
  auto options = std::make_shared<EvalOptions>();
  CLI::App* command = app.add_subcommand("eval", "Perplexity of a text on the simulated machine");
  add_model_and_machine_options(*command, options->model);
  command
      ->add_option("--text", options->text,
                   "Text to score; lines <|endoftext|> separate documents, each starts with BOS")
      ->type_name("FILE")
      ->required();
  command
      ->add_option("--window", options->window.length,
                   "Tokens a window, from position 0 each; default: the model's context")
      ->type_name("N");
  command
      ->add_option("--stride", options->window.stride,
                   "Tokens from one window to the next; default: half a window")
      ->type_name("N");
  command
      ->add_option("--weights", options->weights,
                   "Compare these types of weights: bf16,mxfp8_e4m3,mxint8:block32,…")
      ->delimiter(',')
      ->type_name("TYPES");
  command
      ->add_option("--block-sizes", options->blocks,
                   "Compare these blocks of weights with scales: 8,16,32,…")
      ->check(CLI::Range(1U, UINT32_MAX))
      ->delimiter(',')
      ->type_name("SIZES");
  command->add_option("--kv", options->kv, "Compare these types of the KV cache")
      ->delimiter(',')
      ->type_name("TYPES");
  command
      ->add_option("--scales", options->scales,
                   "Compare how weights get their scales: floor (default), search or both")
      ->check(CLI::IsMember({"floor", "search"}))
      ->delimiter(',')
      ->type_name("RULES");
  command
      ->add_option("--rotate", options->rotate,
                   "Compare Hadamard rotations of MX weights: off (default), auto (where their "
                   "error falls), all")
      ->check(CLI::IsMember({"off", "auto", "all"}))
      ->delimiter(',')
      ->type_name("RULES");
  command->footer("Every combination of the lists is a row; changes are against the first.");
  command->callback([&context, options] {
    context.body = [&context, options] { return evaluate_formats(*options, context); };
  });
}

}  // namespace plena
