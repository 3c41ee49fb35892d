// Quantises tensors straight into the file an image's HBM contents lie in: piece by piece, on all
// cores, with no more in memory than the pieces at work.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "plena/base/error.h"
#include "plena/compiler/image.h"
#include "plena/compiler/tensor_pieces.h"

namespace plena {

/// A tensor and where it goes in HBM.
struct TensorAtPlace {
  std::string name;
  std::uint64_t elements_at = 0;  // byte address
  std::uint64_t scales_at = 0;    // likewise, of an Mx type
  TensorPieces pieces;
};

struct PackOptions {
  std::string folder;  // of the file without a name; empty: the system's for temporary files
  const std::atomic<bool>* interrupted = nullptr;
  /// Called now and then, by one thread at a time: bytes that are packed, of all.
  std::function<void(std::uint64_t done, std::uint64_t all)> progress;
};

/// What fits into memory without being noticed needs no file system.
inline constexpr std::uint64_t kMostBytesInMemory = std::uint64_t{64} << 20;

/// The tensors as segments of one file. The bits do not depend on the number of threads. Errors: a
/// disk without room for them, said before anything is packed, and an interruption.
Result<std::vector<HbmSegment>> pack_hbm(const std::vector<TensorAtPlace>& tensors,
                                         const PackOptions& options,
                                         std::uint64_t most_in_memory = kMostBytesInMemory);

}  // namespace plena
