// Test cases on disk: one folder a case, one program a case, every memory and register compared.
// The format is that of the independent golden model (oracle/README.md, "Case format").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plena/base/error.h"
#include "plena/base/files.h"
#include "plena/config/settings.h"
#include "plena/isa/dialect.h"
#include "plena/isa/encoding.h"
#include "plena/machine/machine.h"
#include "plena/numerics/simd_target.h"
#include "plena/sim/trap.h"

namespace plena {

class Workers;

/// How this host is to compute a case: what it expects is the same with any.
struct CaseHost {
  SimdTarget simd = simd_target();
  Workers* workers = nullptr;  // null: the calling thread alone
};

/// A piece of a memory: elements from `first` on, as little-endian state-file bytes.
struct CaseSegment {
  MemoryKind memory{};
  std::uint64_t first = 0;
  Bytes bytes;
};

struct CaseRegisters {
  std::vector<std::uint32_t> gp;  // 16
  std::vector<std::uint32_t> f;   // 8 bit patterns
  std::vector<std::uint64_t> a;   // 8
  std::uint32_t scale = 0;
  std::uint32_t stride = 0;
  std::uint32_t v_mask = 0;
  std::uint64_t retired = 0;
};

struct Case {
  std::string name;
  std::string description;
  Settings settings;
  Dialect dialect;
  std::vector<std::uint32_t> words;
  std::string assembly;          // program.asm
  bool assembly_matches = true;  // it assembles to `words`
  bool continue_after_break = false;
  std::string expected_trap;      // trap_name(), or empty for a normal end
  std::uint64_t expected_pc = 0;  // of the trap
  std::vector<std::uint64_t> breaks;
  std::vector<CaseSegment> initial;
  std::vector<CaseSegment> final;
  CaseRegisters registers;
};

Result<Case> load_case(const std::string& folder);

/// Everything that differs from what the case expects, a line each; empty is a pass. An Error is a
/// case that cannot be run at all.
Result<std::vector<std::string>> run_case(const Case& test, const CaseHost& host = {});

/// A folder is a case when it holds a case.json.
bool is_case_folder(const std::string& folder);

}  // namespace plena
