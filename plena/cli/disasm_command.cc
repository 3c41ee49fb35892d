// plena disasm FILE.mem [-o FILE.asm]: words to text that assembles to the same words.
#include <memory>

#include <nlohmann/json.hpp>

#include "plena/asm/disassembler.h"
#include "plena/asm/mem_file.h"
#include "plena/cli/commands.h"
#include "plena/cli/machine_options.h"
#include "plena/cli/text_output.h"

namespace plena {

namespace {

struct DisasmOptions {
  std::string file;
  std::string output;
  MachineOptions machine;
};

Status write_text_of(const DisasmOptions& options, std::span<const std::uint32_t> words,
                     const Dialect& dialect) {
  auto output = TextOutput::open(options.output, options.file);
  if (!output) return tl::unexpected(output.error());
  auto written =
      disassemble(words, dialect, [&](std::string_view text) { return output->append(text); });
  return written ? output->commit() : written;
}

Status print_json(std::span<const std::uint32_t> words, const Dialect& dialect) {
  auto rows = nlohmann::ordered_json::array();
  // The pieces are not needed here, only the verdict on every word.
  auto checked = disassemble(words, dialect, [](std::string_view) { return Status(); });
  if (!checked) return checked;
  for (const auto word : words) {
    rows.push_back({{"word", fmt::format("0x{:08X}", word)}, {"text", disassemble(word, dialect)}});
  }
  print("{}\n", rows.dump(2));
  return {};
}

Result<int> disassemble_command(const DisasmOptions& options, const Context& context) {
  const auto dialect = Dialect::parse(options.machine.isa);
  if (!dialect) return tl::unexpected(dialect.error());
  const auto words = read_mem_file(options.file);
  if (!words) return tl::unexpected(words.error());
  auto done = context.json && options.output.empty() ? print_json(*words, *dialect)
                                                     : write_text_of(options, *words, *dialect);
  if (done) return 0;
  if (done.error().code == ErrorCode::Format) done.error().place.file = options.file;
  return tl::unexpected(std::move(done).error());
}

}  // namespace

void add_disasm_command(CLI::App& app, Context& context) {
  auto options = std::make_shared<DisasmOptions>();
  CLI::App* command = app.add_subcommand("disasm", "Turn words back into assembly text");
  command->add_option("FILE.mem", options->file, "Words in hexadecimal, any white space between")
      ->required();
  command->add_option("-o,--output", options->output, "Text to FILE.asm instead of stdout")
      ->type_name("FILE.asm");
  add_isa_option(*command, options->machine);
  command->callback([&context, options] {
    context.body = [&context, options] { return disassemble_command(*options, context); };
  });
}

}  // namespace plena
