// The profile kind `serial`: each instruction starts when the one before is complete.
#pragma once

#include "plena/timing/issue_model.h"

namespace plena {

/// Every cycle is charged to the instruction that takes it: its first is Issue, the others
/// Completion, or HbmData where the memory takes them.
class SerialIssue final : public IssueModel {
 public:
  using IssueModel::IssueModel;

  void retire(const Machine& machine, std::uint32_t pc, std::uint32_t rs1_before) override;
  void drain() override {}
  [[nodiscard]] std::string state() const override;
  [[nodiscard]] std::optional<std::array<UnitAccount, kUnitCount>> unit_accounts() const override;

 private:
  Cycle transfer(const Machine& machine, std::uint32_t pc);

  std::array<std::uint64_t, kUnitCount> busy_{};
};

}  // namespace plena
