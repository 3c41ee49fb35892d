// plena isa [MNEMONIC] [--markdown]: the reference, from the instruction table.
#include <algorithm>
#include <memory>

#include <nlohmann/json.hpp>

#include "plena/base/near_miss.h"
#include "plena/cli/commands.h"
#include "plena/isa/reference.h"

namespace plena {

namespace {

struct IsaOptions {
  std::string mnemonic;
  bool markdown = false;
};

nlohmann::ordered_json describe(const InstructionRow& row) {
  nlohmann::ordered_json operands = nlohmann::ordered_json::array();
  for (const auto& operand : row.operands()) {
    operands.push_back({{"name", operand.name}, {"values", operand_values(operand, row)}});
  }
  return {{"mnemonic", row.mnemonic},
          {"opcode", static_cast<unsigned>(row.op)},
          {"class", class_name(row.instruction_class)},
          {"extension", extension_name(row.extension)},
          {"format", format_line(row)},
          {"word", encoding_line(row)},
          {"operands", operands},
          {"operation", row.operation},
          {"summary", row.summary},
          {"rule", instruction_rules(row.op)}};
}

void print_table() {
  for (const auto& row : instruction_table()) {
    const std::string extension = row.extension == Extension::Base
                                      ? std::string()
                                      : fmt::format(" [{}]", extension_name(row.extension));
    print("{:<50} {}{}\n", format_line(row), row.summary, extension);
  }
}

void print_instruction(const InstructionRow& row) {
  print("{}\n\n  {}\n\n  operation  {}\n  word       {}\n", format_line(row), row.summary,
        row.operation, encoding_line(row));
  for (const auto& operand : row.operands()) {
    print("  {:<10} {}\n", operand.name, operand_values(operand, row));
  }
  print("  rule       {}\n", instruction_rules(row.op));
  if (row.extension != Extension::Base) {
    print("  extension  needs --isa plena+{}\n", extension_name(row.extension));
  }
}

Result<int> show_all(const IsaOptions& options, bool json) {
  if (json) {
    auto rows = nlohmann::ordered_json::array();
    for (const auto& row : instruction_table()) rows.push_back(describe(row));
    print("{}\n", rows.dump(2));
  } else if (options.markdown) {
    print(markdown_reference());
  } else {
    print_table();
  }
  return 0;
}

Result<int> show(const IsaOptions& options, bool json) {
  if (options.mnemonic.empty()) return show_all(options, json);
  const InstructionRow* row = find_row(std::string_view(options.mnemonic));
  if (row == nullptr) {
    std::vector<std::string_view> names;
    for (const auto& known : instruction_table()) names.push_back(known.mnemonic);
    std::string hint = did_you_mean(options.mnemonic, names);
    if (hint.empty()) hint = "plena isa lists all of them";
    return fail_with_hint(ErrorCode::Usage,
                          fmt::format("there is no instruction {}", options.mnemonic),
                          std::move(hint));
  }
  if (json) {
    print("{}\n", describe(*row).dump(2));
  } else {
    print_instruction(*row);
  }
  return 0;
}

}  // namespace

void add_isa_command(CLI::App& app, Context& context) {
  auto options = std::make_shared<IsaOptions>();
  CLI::App* command = app.add_subcommand("isa", "The instruction set reference");
  auto* mnemonic = command->add_option("MNEMONIC", options->mnemonic, "One instruction, any case");
  command->add_flag("--markdown", options->markdown, "All of it as the page docs/isa.md")
      ->excludes(mnemonic);
  command->callback([&context, options] {
    context.body = [&context, options] { return show(*options, context.json); };
  });
}

}  // namespace plena
