// plena port FILE [-o FILE2.mem]: from the dialect plena-rs to the specification.
#include <algorithm>
#include <map>
#include <memory>

#include <nlohmann/json.hpp>

#include "plena/asm/disassembler.h"
#include "plena/asm/mem_file.h"
#include "plena/asm/program_file.h"
#include "plena/check/port.h"
#include "plena/cli/commands.h"
#include "plena/cli/machine_options.h"
#include "plena/cli/text_output.h"

namespace plena {

namespace {

struct PortOptions {
  std::string file;
  std::string output;
  MachineOptions machine{.isa = "plena-rs"};
};

std::string text_at(const Program& program, std::uint64_t pc) {
  if (pc >= program.words.size()) return "(end)";
  return disassemble(program.words[pc], Dialect::plena_rs());
}

// Findings that say the same of several instructions are one line with all their places.
struct Group {
  const PortFinding* first = nullptr;
  std::vector<std::uint64_t> pcs;
};

std::vector<Group> group(const std::vector<PortFinding>& findings) {
  std::vector<Group> groups;
  std::map<std::string, std::size_t> index;
  for (const PortFinding& finding : findings) {
    const std::string key = fmt::format("{}/{}/{}", static_cast<int>(finding.rs_switch),
                                        static_cast<int>(finding.outcome), finding.explanation);
    const auto [found, added] = index.try_emplace(key, groups.size());
    if (added) groups.push_back({&finding, {}});
    groups[found->second].pcs.push_back(finding.pc);
  }
  return groups;
}

void print_groups(const PortedProgram& ported, const Program& program) {
  for (const Group& g : group(ported.findings)) {
    print("{:<13} {:<15} {}: {}\n", port_outcome_name(g.first->outcome),
          rs_switch_name(g.first->rs_switch),
          g.pcs.size() == 1 ? fmt::format("pc {}", g.pcs.front())
                            : fmt::format("pc {} and {} more", g.pcs.front(), g.pcs.size() - 1),
          text_at(program, g.pcs.front()));
    print("{:<29} {}\n", "", g.first->explanation);
  }
}

void print_findings(const PortedProgram& ported, const Program& program) {
  for (const PortFinding& finding : ported.findings) {
    print("{:<13} {:<15} pc {}: {}\n{:<29} {}\n", port_outcome_name(finding.outcome),
          rs_switch_name(finding.rs_switch), finding.pc, text_at(program, finding.pc), "",
          finding.explanation);
  }
}

void print_summary(const PortedProgram& ported) {
  for (const std::string& note : ported.notes) print("note: {}\n", note);
  print("run it with --isa {}\n", ported.target.name());
  if (!ported.equivalent()) {
    print("not the same: see what was not rewritten or is not known\n");
  } else if (ported.has(PortOutcome::Rounding) || ported.has(PortOutcome::DataDependent)) {
    print(
        "the same but for {}{}{}\n", ported.has(PortOutcome::Rounding) ? "the order of sums" : "",
        ported.has(PortOutcome::Rounding) && ported.has(PortOutcome::DataDependent) ? " and " : "",
        ported.has(PortOutcome::DataDependent) ? "the values named" : "");
  } else {
    print("the same\n");
  }
}

nlohmann::ordered_json describe(const PortedProgram& ported, const Program& program) {
  auto findings = nlohmann::ordered_json::array();
  for (const PortFinding& finding : ported.findings) {
    findings.push_back({{"pc", finding.pc},
                        {"instruction", text_at(program, finding.pc)},
                        {"switch", rs_switch_name(finding.rs_switch)},
                        {"outcome", port_outcome_name(finding.outcome)},
                        {"explanation", finding.explanation}});
  }
  return {{"equivalent", ported.equivalent()},
          {"isa", ported.target.name()},
          {"words", ported.words.size()},
          {"notes", ported.notes},
          {"findings", findings}};
}

Result<int> port(const PortOptions& options, const Context& context) {
  auto dialect = Dialect::parse(options.machine.isa);
  if (!dialect) return forward_error(dialect);
  if (*dialect != Dialect::plena_rs()) {
    return fail_with_hint(ErrorCode::Usage, "only programs of the dialect plena-rs are ported",
                          "leave --isa out");
  }
  MachineOptions machine = options.machine;
  // The emulator reads no other section (dialect-plena-rs.md 7).
  if (!machine.settings_file.empty() && machine.mode.empty()) machine.mode = "transactional";
  auto settings = resolve_settings(machine, context);
  if (!settings) return forward_error(settings);
  auto program =
      read_program(options.file, {.dialect = *dialect, .symbols = integer_symbols(*settings)});
  if (!program) return forward_error(program);
  auto ported = port_program(program->words, *settings);
  if (!ported) return forward_error(ported);

  if (context.json) {
    print("{}\n", describe(*ported, *program).dump(2));
  } else {
    context.verbose ? print_findings(*ported, *program) : print_groups(*ported, *program);
    print_summary(*ported);
  }
  if (!options.output.empty()) {
    auto output = TextOutput::open(options.output, options.file);
    if (!output) return forward_error(output);
    auto written =
        write_mem(ported->words, [&](std::string_view text) { return output->append(text); });
    if (written) written = output->commit();
    if (!written) return tl::unexpected(written.error());
  }
  return ported->equivalent() ? 0 : 1;
}

}  // namespace

void add_port_command(CLI::App& app, Context& context) {
  auto options = std::make_shared<PortOptions>();
  CLI::App* command = app.add_subcommand(
      "port", "Say what of a plena-rs program depends on the dialect, and rewrite it");
  command->add_option("FILE", options->file, "A program of the dialect plena-rs, .mem or assembly")
      ->required();
  command->add_option("-o,--output", options->output, "Write the ported program, a .mem file")
      ->type_name("FILE");
  add_machine_options(*command, options->machine);
  command->footer(
      "What is said of an instruction: rewritten (the new program does the same), rounding (a sum\n"
      "in another order), data (the same unless the values named occur), not rewritten, unknown.\n"
      "--verbose lists every instruction. Exit status 1 when something is not the same or "
      "unknown.");
  command->callback([&context, options] {
    context.body = [&context, options] { return port(*options, context); };
  });
}

}  // namespace plena
