// Inside plena port: the pass over one program that finds what depends on the dialect and collects
// the edits. porter.cc is about the program as a whole, port_rules.cc about single instructions.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "plena/check/address_recoding.h"
#include "plena/check/port.h"
#include "plena/check/port_facts.h"
#include "plena/check/program_edits.h"

namespace plena {

class Porter {
 public:
  Porter(std::vector<Instruction> program, std::vector<bool> legal, const Settings& settings);

  /// `words` are those `program` was decoded from.
  PortedProgram port(const std::vector<std::uint32_t>& words);

 private:
  using enum PortOutcome;

  // ------------------------------------------------------------ what is found

  void find(RsSwitch rs_switch, PortOutcome outcome, std::string explanation) {
    ported_.findings.push_back({pc_, rs_switch, outcome, std::move(explanation)});
  }
  [[nodiscard]] bool has(PortIssue issue) const { return facts_.at[pc_].has(issue); }
  std::set<RegisterUse> uses(Op op, Field field) const;

  // The instruction that takes this one's place so far.
  [[nodiscard]] Instruction current() const { return edits_.replaced(pc_).value_or(program_[pc_]); }
  void note_end();
  void note_settings();
  void close_loops();
  void rename_address_registers();
  void visit_registers(const Instruction& i);
  void set_registers_first();
  void visit(const Instruction& i, std::uint32_t word);
  void normalise(std::uint32_t word);

  // A spare register that is taken once for the whole program.
  std::optional<std::uint8_t> lasting_gp(std::optional<std::uint8_t>& slot) {
    if (!slot) slot = spare_.take_gp();
    return slot;
  }

  static constexpr const char* kNoSpare = "; no register is spare";
  void visit_matrix(const Instruction& i);
  void recode(AddressRecoder& recoder, PortIssue issue, const char* what);
  void replace_vector_product(const Instruction& i);
  void replace_vector_write_out(const Instruction& i);
  void quarter_rows(const Instruction& i, std::uint32_t rows);
  void visit_vector(const Instruction& i);
  void visit_mask(const Instruction& i);

  // V_MASK that selects every lane.
  [[nodiscard]] std::uint32_t every_lane() const {
    const std::uint32_t groups = settings_.vlen / settings_.hlen;
    return groups == 32 ? ~0U : (1U << groups) - 1;
  }
  void merge(const Instruction& i, const Instruction& unmasked);
  void visit_scalar(const Instruction& i);
  void visit_transfer(const Instruction& i);
  void visit_addresses(DataType type);
  void finish(const std::vector<std::uint32_t>& words);
  void check_recoded_addresses();
  std::vector<std::uint64_t> access_digests(std::span<const Instruction> program,
                                            const std::vector<std::uint64_t>& pcs, bool map) const;

  const Settings& settings_;
  std::vector<Instruction> program_;
  std::vector<bool> legal_;
  ProgramFacts facts_;
  LoopFlow flow_;
  SpareRegisters spare_;
  ProgramEdits edits_;
  AddressRecoder columns_;
  AddressRecoder rows_;
  PortedProgram ported_;
  std::vector<Instruction> new_program_;
  std::uint64_t pc_ = 0;
  std::vector<std::uint64_t> recoded_;

  bool sets_stride_first_ = false;
  bool sets_scale_first_ = false;
  bool rows_back_set_ = false;
  std::set<std::uint8_t> addresses_set_first_;
  std::optional<std::uint8_t> rows_back_, first_row_, zero_stride_;
  std::optional<std::uint8_t> scale_address_, scale_counter_, quarter_;
  std::optional<std::uint8_t> scratch_, mask_, negative_;
};

}  // namespace plena
