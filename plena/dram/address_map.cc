#include "plena/dram/address_map.h"

#include <bit>
#include <initializer_list>
#include <vector>

namespace plena::dram {
namespace {

// One bit of a coordinate: the exclusive or of the address bits in the mask.
constexpr std::uint32_t a(unsigned bit) {
  return 1U << bit;
}

using Bits = std::vector<std::uint32_t>;  // lowest first

// The parts of a map below the row; the row is every bit
// from `row` up.
struct MapBits {
  Bits bank, group, stack, pseudo_channel, column;
  unsigned row;
};

// The table "Address maps" of the reference measurements.
MapBits map_bits(Standard standard, MapKind kind) {
  if (standard == Standard::Hbm2) {
    switch (kind) {
      case MapKind::Mop:
        return {.bank = {a(10) | a(13), a(11) | a(14)},
                .group = {a(8) | a(6), a(9) | a(12)},
                .stack = {},
                .pseudo_channel = {a(7) | a(5)},
                .column = {a(5), a(6), a(12), a(13), a(14)},
                .row = 15};
      case MapKind::Row:
        return {.bank = {a(13), a(14)},
                .group = {a(11), a(12)},
                .stack = {},
                .pseudo_channel = {a(10)},
                .column = {a(5), a(6), a(7), a(8), a(9)},
                .row = 15};
      case MapKind::Bgi:
        return {.bank = {a(13), a(14)},
                .group = {a(6), a(7)},
                .stack = {},
                .pseudo_channel = {a(5)},
                .column = {a(8), a(9), a(10), a(11), a(12)},
                .row = 15};
    }
  }
  switch (kind) {
    case MapKind::Mop:
      return {.bank = {a(11) | a(15), a(12)},
              .group = {a(9) | a(13), a(10) | a(14)},
              .stack = {a(8) | a(6)},
              .pseudo_channel = {a(7) | a(5)},
              .column = {a(5), a(6), a(13), a(14), a(15)},
              .row = 16};
    case MapKind::Row:
      return {.bank = {a(14), a(15)},
              .group = {a(12), a(13)},
              .stack = {a(11)},
              .pseudo_channel = {a(10)},
              .column = {a(5), a(6), a(7), a(8), a(9)},
              .row = 16};
    case MapKind::Bgi:
      break;
  }
  return {.bank = {a(13), a(14)},
          .group = {a(6), a(7)},
          .stack = {a(15)},
          .pseudo_channel = {a(5)},
          .column = {a(8), a(9), a(10), a(11), a(12)},
          .row = 16};
}

// The number whose bits are the parities of the masked address, first mask lowest.
std::uint8_t gather(std::uint32_t address, std::initializer_list<const Bits*> parts) {
  unsigned value = 0;
  unsigned place = 0;
  for (const Bits* part : parts) {
    for (const std::uint32_t mask : *part)
      value |= static_cast<unsigned>(std::popcount(address & mask) & 1) << place++;
  }
  return static_cast<std::uint8_t>(value);
}

}  // namespace

std::string_view name(MapKind kind) {
  switch (kind) {
    case MapKind::Mop:
      return "mop";
    case MapKind::Row:
      return "row";
    case MapKind::Bgi:
      break;
  }
  return "bgi";
}

Result<MapKind> find_map(std::string_view wanted) {
  for (const MapKind kind : {MapKind::Mop, MapKind::Row, MapKind::Bgi})
    if (name(kind) == wanted) return kind;
  return fail_with_hint(ErrorCode::Usage, fmt::format("unknown address map '{}'", wanted),
                        "known maps: mop, row, bgi");
}

Result<AddressMap> AddressMap::make(const DramPreset& preset, MapKind kind, std::uint32_t channels,
                                    std::uint32_t interleave_bytes) {
  if (!std::has_single_bit(channels) || channels > 256) {
    return fail(ErrorCode::Settings, "{} HBM channels: a power of two up to 256 is needed",
                channels);
  }
  if (channels > 1 && (!std::has_single_bit(interleave_bytes) || interleave_bytes < 32)) {
    return fail(ErrorCode::Settings,
                "channel interleave of {} bytes: 32 times a power of two is needed",
                interleave_bytes);
  }
  AddressMap map;
  const MapBits bits = map_bits(preset.standard, kind);
  for (std::uint32_t low = 0; low < kTableSize; ++low) {
    const std::uint32_t address = low << kBurstShift;
    map.bank_[low] = gather(address, {&bits.group, &bits.stack, &bits.pseudo_channel, &bits.bank});
    map.column_[low] = gather(address, {&bits.column});
  }
  map.row_shift_ = bits.row;
  map.channel_bits_ = static_cast<unsigned>(std::bit_width(channels)) - 1;
  if (channels > 1)
    map.interleave_shift_ = static_cast<unsigned>(std::bit_width(interleave_bytes)) - 1;
  return map;
}

}  // namespace plena::dram
