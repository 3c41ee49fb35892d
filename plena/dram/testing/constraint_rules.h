// The rows of constraints.tsv and a checker of command logs against them. For tests only: it
// shares nothing with the timing code it checks but the numbering of banks.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "plena/dram/command.h"
#include "plena/dram/preset.h"
#include "plena/dram/shape.h"

namespace plena::dram::testing {

/// The scopes of the table. "Other stack id" is the one beside the next command's.
enum class ConstraintScope : std::uint8_t {
  Channel,
  PseudoChannel,
  Stack,
  OtherStack,
  Group,
  Bank,
};
inline constexpr std::array<const char*, 6> kScopeNames = {
    "channel", "pseudo-channel", "stack id", "other stack id", "bank group", "bank"};

struct ConstraintRule {
  std::string text;  // the row, for messages
  ConstraintScope scope;
  Command previous;
  Command next;
  unsigned nth_previous = 1;
  Tick start_to_start = 0;  // ticks
  Tick on_edges = 0;        // the same, rounded up where both commands need a rising edge
};

inline std::vector<std::string> split(const std::string& line, char separator) {
  std::vector<std::string> fields;
  std::stringstream stream(line);
  for (std::string field; std::getline(stream, field, separator);) fields.push_back(field);
  return fields;
}

/// The commands a field of the table names.
inline std::vector<Command> commands_of(const std::string& field) {
  std::vector<Command> commands;
  for (std::size_t i = 0; i < kCommandCount; ++i) {
    const auto command = static_cast<Command>(i);
    const bool named = field == "any column command" ? is_column(command)
                       : field == "any row command"  ? !is_column(command)
                                                     : false;
    if (named) commands.push_back(command);
    for (const std::string& word : split(field, ' '))
      if (word == name(command)) commands.push_back(command);
  }
  return commands;
}

/// Every row of the table for one preset, one rule for each pair of commands it names.
inline std::vector<ConstraintRule> load_constraint_rules(const std::string& path,
                                                         const DramPreset& preset) {
  std::vector<ConstraintRule> rules;
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);  // heading
  while (std::getline(file, line)) {
    const std::vector<std::string> fields = split(line, '\t');
    std::string preset_name = fields[0];
    for (char& c : preset_name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (preset_name != preset.name) continue;
    const auto ticks = [&](std::size_t field) {
      return static_cast<Tick>(std::lround(std::stod(fields[field]) * preset.ticks_per_ck));
    };
    const auto scope = static_cast<ConstraintScope>(
        std::find(kScopeNames.begin(), kScopeNames.end(), fields[1]) - kScopeNames.begin());
    for (const Command previous : commands_of(fields[2])) {
      for (const Command next : commands_of(fields[3])) {
        const bool manages =
            next == Command::ManageRefreshAll || next == Command::ManageRefreshBank;
        if (manages && preset.timings.nRFMab == 0) continue;  // HBM2 has no such commands
        rules.push_back({.text = line,
                         .scope = scope,
                         .previous = previous,
                         .next = next,
                         .nth_previous = static_cast<unsigned>(std::stoi(fields[4])),
                         .start_to_start = ticks(7),
                         .on_edges = ticks(8)});
      }
    }
  }
  return rules;
}

/// Which instance of a scope a bank belongs to, as the earlier command of a pair sees it.
inline unsigned instance_of_previous(ConstraintScope scope, Standard standard, unsigned bank) {
  const BankCoordinates at = coordinates(standard, bank);
  const unsigned stack = 2 * at.pseudo_channel + at.stack;
  switch (scope) {
    case ConstraintScope::Channel:
      return 0;
    case ConstraintScope::PseudoChannel:
      return at.pseudo_channel;
    case ConstraintScope::Stack:
    case ConstraintScope::OtherStack:
      return stack;
    case ConstraintScope::Group:
      return 4 * stack + at.group;
    case ConstraintScope::Bank:
      break;
  }
  return bank;
}
/// The same as the later command sees it.
inline unsigned instance_of_next(ConstraintScope scope, Standard standard, unsigned bank) {
  const unsigned instance = instance_of_previous(scope, standard, bank);
  return scope == ConstraintScope::OtherStack ? instance ^ 1 : instance;
}

/// Reads commands in order and says which rule the first bad one breaks.
class ConstraintChecker {
 public:
  ConstraintChecker(const std::vector<ConstraintRule>& rules, const DramPreset& preset)
      : preset_(preset) {
    for (const ConstraintRule& rule : rules) rules_[rule.next].push_back(rule);
  }

  /// What is wrong with the command, or an empty string.
  std::string check(const CommandRecord& command) {
    std::string problem = check_state(command);
    for (const ConstraintRule& rule : rules_[command.command]) {
      if (!problem.empty()) break;
      const unsigned instance = instance_of_next(rule.scope, preset_.standard, command.bank);
      const auto found = last_.find({command.channel, rule.previous, rule.scope, instance});
      if (found == last_.end()) continue;
      const Tick previous = found->second[rule.nth_previous - 1];
      if (command.tick < previous + rule.start_to_start) {
        problem = fmt::format("{} at tick {}, bank {}, only {} after the {} before it: {}",
                              name(command.command), command.tick, command.bank,
                              command.tick - previous, name(rule.previous), rule.text);
      }
    }
    remember(command);
    return problem;
  }

 private:
  // Rows open and closed as commands demand; rising edges.
  std::string check_state(const CommandRecord& command) {
    auto& open = open_[command.channel];
    const auto complain = [&](const char* what) {
      return fmt::format("{} at tick {}, bank {}: {}", name(command.command), command.tick,
                         command.bank, what);
    };
    const bool precharge =
        command.command == Command::Precharge || command.command == Command::PrechargeAll;
    if (preset_.ticks_per_ck == 2 && !precharge && command.tick % 2 == 0)
      return complain("not on a rising edge");
    switch (command.command) {
      case Command::Activate:
        if (open[command.bank] >= 0) return complain("a row is open");
        open[command.bank] = command.row;
        return {};
      case Command::Read:
      case Command::Write:
        if (open[command.bank] != command.row) return complain("its row is not open");
        return {};
      case Command::Precharge:
        open[command.bank] = -1;
        return {};
      case Command::RefreshBank:
        if (open[command.bank] >= 0) return complain("a row is open");
        return {};
      case Command::PrechargeAll:
      case Command::RefreshAll:
        for (unsigned bank = 0; bank < preset_.organisation.banks(); ++bank) {
          if (coordinates(preset_.standard, bank).pseudo_channel !=
              coordinates(preset_.standard, command.bank).pseudo_channel)
            continue;
          if (command.command == Command::RefreshAll && open[bank] >= 0)
            return complain("a row is open");
          open[bank] = -1;
        }
        return {};
      default:
        return complain("not a command the scheduler sends");
    }
  }

  void remember(const CommandRecord& command) {
    constexpr Tick kLongAgo = -1'000'000'000;
    for (std::size_t i = 0; i < kScopeNames.size(); ++i) {
      const auto scope = static_cast<ConstraintScope>(i);
      const unsigned instance = instance_of_previous(scope, preset_.standard, command.bank);
      auto [entry, fresh] = last_.try_emplace({command.channel, command.command, scope, instance});
      auto& last = entry->second;
      if (fresh) last.fill(kLongAgo);
      last = {command.tick, last[0], last[1], last[2]};
    }
  }

  struct OpenRows : std::array<std::int64_t, kMaxBanks> {
    OpenRows() { fill(-1); }
  };

  std::map<Command, std::vector<ConstraintRule>> rules_;  // by the next command
  DramPreset preset_;
  // Ticks of the last four commands by channel, command, scope and its instance, latest first.
  std::map<std::tuple<std::uint32_t, Command, ConstraintScope, unsigned>, std::array<Tick, 4>>
      last_;
  std::map<std::uint32_t, OpenRows> open_;
};

}  // namespace plena::dram::testing
