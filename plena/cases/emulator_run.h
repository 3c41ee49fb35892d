// A run of the dialect plena-rs as the public Rust emulator would be called: its input files, its
// counts, its dumps (dialect-plena-rs.md 0 and 7). Behind `plena emulate` and the conformance
// bundles.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plena/base/error.h"
#include "plena/cases/case.h"
#include "plena/config/settings.h"
#include "plena/machine/machine.h"
#include "plena/sim/engine.h"

namespace plena {

/// A .mem file as the emulator reads it.
struct EmulatorProgram {
  Program program;
  std::optional<Trap> refused;  // a token that it refuses and others read
};

/// An Error is a text that is no .mem file.
Result<EmulatorProgram> emulator_program(std::string_view text, const std::string& name);

struct EmulatorInputs {
  Settings settings;  // of the TRANSACTIONAL section
  const EmulatorProgram* program = nullptr;
  std::span<const std::uint8_t> hbm;       // image from byte 0
  std::span<const std::uint8_t> fp_sram;   // binary16, from entry 0
  std::span<const std::uint8_t> int_sram;  // u32, from entry 0
  std::span<const std::uint8_t> vram;      // elements of VECTOR_SRAM_TYPE from row 0
};

struct EmulatorRun {
  Machine machine;
  std::optional<Trap> trap;
  bool interrupted = false;
  std::uint64_t latency = 0;   // cycles of section 7, 1 ns each; memory as EmulatorOptions says
  std::uint64_t hbm_read = 0;  // bytes, whole 64-byte blocks
  std::uint64_t hbm_written = 0;
};

/// When an H-type instruction that starts at cycle `now` is complete. Asked right after it retired.
using MemoryTime = std::function<std::uint64_t(const Machine& machine,
                                               const Instruction& instruction, std::uint64_t now)>;

struct EmulatorOptions {
  Observer* observer = nullptr;  // whoever else wants to watch the run
  MemoryTime memory_time;        // where empty, memory is free
  const std::atomic<bool>* interrupted = nullptr;
  CaseHost host;
};

/// Loads the inputs and runs. An Error is an input that does not fit; a trap is in the result.
Result<EmulatorRun> run_emulator(const EmulatorInputs& inputs, const EmulatorOptions& options = {});

/// Bytes one row of a transfer moves, in whole 64-byte blocks: of elements and, separately, of
/// scales. A block that is written is read first.
struct EmulatorTraffic {
  std::uint64_t read = 0;
  std::uint64_t written = 0;
};
EmulatorTraffic emulator_traffic(const HbmRow& row);

/// Cycles of one instruction without its memory traffic, from the settings' LATENCY entries
/// (dialect-plena-rs.md 7). H-type instructions cost what the memory model says: 0 here.
std::uint64_t emulator_cycles(const Instruction& instruction, const Settings& settings);

}  // namespace plena
