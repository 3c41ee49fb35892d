// The emulator's memory dumps: whole memories in their own types (dialect-plena-rs.md 0).
#pragma once

#include <cstdint>
#include <string>

#include "plena/base/error.h"
#include "plena/base/files.h"
#include "plena/machine/machine.h"

namespace plena {

struct EmulatorDump {
  Bytes bytes;                   // up to the last byte that is not 0
  std::uint64_t full_bytes = 0;  // size of the file
};

/// Vector SRAM as it is; Matrix SRAM, which rs-mx keeps in f32, rounded to MATRIX_SRAM_TYPE; FP_MEM
/// as bf16, INT_MEM as u32, HBM as bytes.
EmulatorDump emulator_dump(const Machine& machine, MemoryKind memory);

/// Writes a dump to a file; zeros at its end take no space on disk.
Status write_emulator_dump(const Machine& machine, MemoryKind memory, const std::string& path);

}  // namespace plena
