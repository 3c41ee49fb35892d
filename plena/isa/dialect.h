// Which machine is meant: the extensions that are on and the switches of the dialect plena-rs
// (semantics 8), as --isa names them.
#pragma once

#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>

#include "plena/base/error.h"
#include "plena/isa/instruction.h"

namespace plena {

/// One row of the second table of semantics 8 each.
enum class RsSwitch : std::uint8_t {
  Decode,
  Registers,
  TileAddress,
  Mv,
  BmmScale,
  BmmLanes,
  Accumulators,
  SumOrder,
  MaskMerge,
  SubOrder,
  ExpClamp,
  Max,
  TopK,
  Break,
  Loops,
  Mx,
  HbmBytes,
  Memories,
};
inline constexpr std::size_t kRsSwitchCount = 18;
std::string_view rs_switch_name(RsSwitch rs_switch);  // "rs-decode", …

class Dialect {
 public:
  /// The specification's machine without extensions.
  Dialect() = default;

  /// `plena`, `plena+moe+bmv`, `plena+rs-sub-order`, or `plena-rs` (all switches, all extensions).
  static Result<Dialect> parse(std::string_view spec);
  static Dialect plena_rs();

  [[nodiscard]] bool has(Extension extension) const {
    return extension == Extension::Base || extensions_[static_cast<std::size_t>(extension)];
  }
  [[nodiscard]] bool has(RsSwitch rs_switch) const {
    return switches_[static_cast<std::size_t>(rs_switch)];
  }
  Dialect& enable(Extension extension) {
    extensions_.set(static_cast<std::size_t>(extension));
    return *this;
  }
  Dialect& enable(RsSwitch rs_switch) {
    switches_.set(static_cast<std::size_t>(rs_switch));
    return *this;
  }
  [[nodiscard]] bool any_switch() const { return switches_.any(); }

  /// The spec that parse() turns back into this dialect.
  [[nodiscard]] std::string name() const;

  friend bool operator==(const Dialect&, const Dialect&) = default;

 private:
  std::bitset<kExtensionCount> extensions_;
  std::bitset<kRsSwitchCount> switches_;
};

}  // namespace plena
