// From a byte address to the place of its burst: channel, bank, row, column. The maps are those of
// the public reference measurements; which one is used decides half or full bandwidth.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "plena/dram/preset.h"

namespace plena::dram {

enum class MapKind : std::uint8_t {
  Mop,  // four bursts of a row, then other banks, with exclusive ors against strides
  Row,  // a whole row of one bank, then other banks
  Bgi,  // bank groups in the lowest bits
};

std::string_view name(MapKind kind);
Result<MapKind> find_map(std::string_view name);

struct BurstPlace {
  std::uint32_t channel;
  std::uint32_t row;
  std::uint8_t bank;  // of the channel (shape.h)
  std::uint8_t column;

  friend bool operator==(const BurstPlace&, const BurstPlace&) = default;
};

class AddressMap {
 public:
  /// `channels` is a power of two up to 256; with more than one, `interleave_bytes` is 32 times a
  /// power of two: that many neighbouring bytes share a channel.
  static Result<AddressMap> make(const DramPreset& preset, MapKind kind, std::uint32_t channels,
                                 std::uint32_t interleave_bytes);

  /// Any address below 2^47; rows beyond the preset's are rows all the same.
  [[nodiscard]] BurstPlace place(std::uint64_t address) const {
    const std::uint64_t above = address >> interleave_shift_;
    const std::uint64_t local = (above >> channel_bits_ << interleave_shift_) |
                                (address & ((std::uint64_t{1} << interleave_shift_) - 1));
    const std::uint64_t low = local >> kBurstShift & kTableMask;
    return {.channel = static_cast<std::uint32_t>(above) & ((1U << channel_bits_) - 1),
            .row = static_cast<std::uint32_t>(local >> row_shift_),
            .bank = bank_[low],
            .column = column_[low]};
  }

  /// Bytes from a burst to the one in its place of the next row.
  [[nodiscard]] std::uint64_t row_period() const {
    return std::uint64_t{1} << (row_shift_ + channel_bits_);
  }
  [[nodiscard]] std::uint32_t channels() const { return 1U << channel_bits_; }

 private:
  AddressMap() = default;

  static constexpr unsigned kBurstShift = 5;
  // Bank and column depend on address bits 5 to 15 only, in every map.
  static constexpr std::size_t kTableSize = 2048;
  static constexpr std::uint64_t kTableMask = kTableSize - 1;

  std::array<std::uint8_t, kTableSize> bank_{};
  std::array<std::uint8_t, kTableSize> column_{};
  unsigned interleave_shift_ = kBurstShift;
  unsigned channel_bits_ = 0;
  unsigned row_shift_ = 0;
};

}  // namespace plena::dram
