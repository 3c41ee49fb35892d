// Conformance bundles: a compiled program of the public stack with the memories the public emulator
// left behind and golden tensors (conformance/README.md describes the folder).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plena/base/error.h"
#include "plena/base/files.h"
#include "plena/cases/case.h"
#include "plena/config/settings.h"
#include "plena/machine/machine.h"

namespace plena {

/// A memory as the emulator dumped it; trailing zeros are stripped.
struct BundleDump {
  MemoryKind memory{};
  Bytes bytes;
  std::uint64_t full_bytes = 0;
};

/// A reference tensor and where its elements lie.
struct GoldenTensor {
  MemoryKind memory{};
  std::vector<double> values;
  std::vector<std::uint64_t> addresses;  // element of the memory, one a value
  double absolute_tolerance = 0;
  double relative_tolerance = 0;
  bool exact = false;
  double min_match_percent = 100;
  std::optional<double> recomputed_match_percent;  // what the dumps give
};

struct Bundle {
  std::string name;
  Settings settings;
  std::string program;  // text of the .mem file
  Bytes hbm, fp_sram, int_sram, vram;
  std::vector<BundleDump> dumps;
  std::vector<GoldenTensor> golden;
  bool refused = false;  // the emulator panicked: a trap is expected
  std::uint64_t hbm_read = 0;
  std::uint64_t hbm_written = 0;
};

bool is_bundle_folder(const std::string& folder);
Result<Bundle> load_bundle(const std::string& folder);

/// Everything that differs from the bundle, a line each; empty is a pass. Dumps are compared bit
/// for bit except that all NaNs are equal; the golden match must be that of the dumps; byte counts
/// exact.
Result<std::vector<std::string>> run_bundle(const Bundle& bundle, const CaseHost& host = {});

}  // namespace plena
