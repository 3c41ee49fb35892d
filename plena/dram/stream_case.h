// A request stream described by a few numbers: which addresses, when, on which memory, and, if
// somebody measured it, with which result. The format is that of the public reference
// measurements (docs/hbm.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plena/dram/controller.h"

namespace plena::dram {

/// address = base + sum of step * ((k div divisor) mod modulus); modulus 0: no mod.
struct AddressCounter {
  std::uint64_t divisor = 1;
  std::uint64_t modulus = 0;
  std::uint64_t step = 0;
};

struct StreamTrace {
  enum class Kind : std::uint8_t { Counters, Random } kind = Kind::Counters;
  std::uint64_t base = 0;  // Counters
  std::vector<AddressCounter> counters;
  std::uint64_t seed = 0;  // Random: a linear congruential generator ...
  std::uint32_t bits = 0;  // ... of burst numbers this wide
};

/// Requests k with k mod modulus in the set are writes.
struct WriteRule {
  std::uint64_t modulus = 1;
  std::vector<bool> writes = {false};  // [modulus]
};

/// Request k is offered at CK floor(floor(k / group) * numerator / denominator).
struct OfferRule {
  bool as_soon_as_possible = true;
  std::uint64_t group = 1;
  std::uint64_t numerator = 1;
  std::uint64_t denominator = 1;
};

/// What somebody measured.
struct StreamExpectation {
  double total_ck = 0;
  std::optional<double> mean_read_ck;
  std::optional<double> mean_write_ck;
};

struct StreamCase {
  std::string id;
  std::string group;
  DramSettings memory;
  bool row_hit_scheduler = false;  // "FRFCFS-RowHit"; matters to policy `reference` only
  std::uint64_t requests = 0;
  std::optional<std::uint64_t> outstanding;  // limit of accepted, unfinished requests
  std::uint32_t unit = 1;                    // requests a unit
  StreamTrace trace;
  WriteRule write;
  OfferRule offer;
  std::optional<std::uint64_t> checksum;  // FNV-1a of the requests (StreamRequests::checksum)
  std::optional<StreamExpectation> expected;
};

/// Reads every case of a file: an object with an array `cases`, or one case alone.
Result<std::vector<StreamCase>> load_stream_cases(const std::string& path);

/// The same from text; `path` is for error messages.
Result<std::vector<StreamCase>> parse_stream_cases(std::string_view text, const std::string& path);

/// The requests of a case, one after the other.
class StreamRequests {
 public:
  explicit StreamRequests(const StreamCase& stream);

  /// Request number k = 0, 1, 2 ...; its id is k.
  Request next();
  /// The CK at which request k is offered.
  [[nodiscard]] std::uint64_t offered_ck(std::uint64_t k) const;

  /// FNV-1a, 64 bits, over the little-endian bytes of 2 * address + (1 if write) of every request
  /// of the stream.
  static std::uint64_t checksum(const StreamCase& stream);

 private:
  [[nodiscard]] std::uint64_t counted_address() const;

  const StreamCase& stream_;
  std::uint64_t k_ = 0;
  std::uint64_t random_ = 0;
};

}  // namespace plena::dram
