// plena asm FILE.asm [-o FILE.mem] [--listing]: assembly text to words.
#include <filesystem>
#include <memory>

#include <nlohmann/json.hpp>

#include "plena/asm/assembler.h"
#include "plena/asm/mem_file.h"
#include "plena/base/file_reader.h"
#include "plena/cli/commands.h"
#include "plena/cli/interrupt.h"
#include "plena/cli/machine_options.h"
#include "plena/cli/text_output.h"

namespace plena {

namespace {

struct AsmOptions {
  std::string file;
  std::string output;
  bool listing = false;
  MachineOptions machine;
};

Result<Assembly> assemble_source(const AsmOptions& options, const Context& context) {
  const auto dialect = Dialect::parse(options.machine.isa);
  if (!dialect) return tl::unexpected(dialect.error());
  const auto settings = resolve_settings(options.machine, context);
  if (!settings) return tl::unexpected(settings.error());
  auto reader = FileReader::open(options.file);
  if (!reader) return forward_error(reader);
  Assembler assembler({options.file, *dialect, integer_symbols(*settings)});
  assembler.expect_bytes(reader->size());
  for (;;) {
    const auto piece = reader->next();
    if (!piece) return tl::unexpected(piece.error());
    if (interrupted()) return fail(ErrorCode::Interrupted, "interrupted");
    if (piece->empty()) return assembler.finish();
    assembler.feed(*piece);
    if (!assembler.wants_more()) return assembler.finish();
  }
}

nlohmann::ordered_json describe(const Assembly& assembly) {
  auto words = nlohmann::ordered_json::array();
  for (const auto word : assembly.program.words) words.push_back(fmt::format("0x{:08X}", word));
  auto regions = nlohmann::ordered_json::array();
  for (const auto& region : assembly.program.regions) {
    regions.push_back({{"name", region.name}, {"begin", region.begin}, {"end", region.end}});
  }
  auto errors = nlohmann::ordered_json::array();
  for (const auto& error : assembly.errors) {
    errors.push_back({{"kind", syntax_kind_name(error.kind)},
                      {"file", error.place.file},
                      {"line", error.place.line},
                      {"column", error.place.column},
                      {"message", error.message},
                      {"hint", error.hint}});
  }
  if (!assembly.ok()) return {{"errors", errors}, {"error_count", assembly.error_count}};
  return {{"words", words}, {"lines", assembly.program.lines}, {"regions", regions}};
}

int report_errors(const Assembly& assembly, const Context& context) {
  if (context.json) print("{}\n", describe(assembly).dump(2));
  for (const auto& error : assembly.errors) report(context, error);
  if (assembly.error_count > 1) {
    std::string summary = fmt::format("{} errors", assembly.error_count);
    if (assembly.error_count > kMostErrors)
      summary += fmt::format(", the first {} shown", kMostErrors);
    warn(context, summary);
  }
  return exit_status(ErrorCode::Syntax);
}

// index, word, line and text; what a line does not have stays blank.
void print_row(std::string_view index_and_word, std::string_view line, std::string_view text) {
  std::string row = fmt::format("{:<18} {:>6}  {}", index_and_word, line, text);
  row.erase(row.find_last_not_of(' ') + 1);
  print("{}\n", row);
}

// Reads the source a second time, so that a program without a listing never keeps its text.
Status print_listing(const AsmOptions& options, const Program& program) {
  auto reader = FileReader::open(options.file);
  if (!reader) return tl::unexpected(reader.error());
  LineSplitter splitter;
  std::uint32_t line_number = 0;
  std::size_t next = 0;
  const auto on_line = [&](std::string_view text) {
    if (text.ends_with('\r')) text.remove_suffix(1);
    ++line_number;
    const auto word_at = [&] { return fmt::format("{:>6}  {:08X}", next, program.words[next]); };
    const auto line_has_word = [&] {
      return next < program.words.size() && program.lines[next] == line_number;
    };
    const bool has_word = line_has_word();
    print_row(has_word ? word_at() : "", std::to_string(line_number), text);
    if (has_word) ++next;
    for (; line_has_word(); ++next) print_row(word_at(), "", "");
  };
  for (;;) {
    const auto piece = reader->next();
    if (!piece) return tl::unexpected(piece.error());
    if (interrupted()) return fail(ErrorCode::Interrupted, "interrupted");
    if (piece->empty()) break;
    splitter.feed(*piece, on_line);
  }
  splitter.finish(on_line);
  return {};
}

Status write_words(const AsmOptions& options, const Program& program) {
  auto output = TextOutput::open(options.output, options.file);
  if (!output) return tl::unexpected(output.error());
  auto written =
      write_mem(program.words, [&](std::string_view text) { return output->append(text); });
  return written ? output->commit() : written;
}

Result<int> assemble_command(const AsmOptions& options, const Context& context) {
  if (options.listing && !std::filesystem::is_regular_file(options.file) &&
      std::filesystem::exists(options.file)) {
    return fail_with_hint(ErrorCode::Usage, "--listing reads the text twice",
                          fmt::format("{} is not a regular file", options.file));
  }
  const auto assembly = assemble_source(options, context);
  if (!assembly) return tl::unexpected(assembly.error());
  if (!assembly->ok()) return report_errors(*assembly, context);
  const bool to_stdout = options.output.empty();
  if (!to_stdout || (!options.listing && !context.json)) {
    if (auto written = write_words(options, assembly->program); !written) {
      return tl::unexpected(written.error());
    }
  }
  if (context.json) {
    print("{}\n", describe(*assembly).dump(2));
  } else if (options.listing) {
    if (auto listed = print_listing(options, assembly->program); !listed) {
      return tl::unexpected(listed.error());
    }
  }
  return 0;
}

}  // namespace

void add_asm_command(CLI::App& app, Context& context) {
  auto options = std::make_shared<AsmOptions>();
  CLI::App* command = app.add_subcommand("asm", "Assemble a program");
  command->add_option("FILE.asm", options->file, "Assembly text")->required();
  command->add_option("-o,--output", options->output, "Words to FILE.mem instead of stdout")
      ->type_name("FILE.mem");
  command->add_flag("--listing", options->listing,
                    "Index, word and line in front of the text, to stdout");
  add_machine_options(*command, options->machine);
  command->callback([&context, options] {
    context.body = [&context, options] { return assemble_command(*options, context); };
  });
}

}  // namespace plena
