#include "plena/dram/address_map.h"

#include <random>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "plena/base/files.h"
#include "plena/base/shared_data.h"
#include "plena/dram/shape.h"
#include "plena/dram/testing/constraint_rules.h"

namespace plena::dram {
namespace {

// "a8^a6" of an address.
unsigned bit(const std::string& formula, std::uint64_t address) {
  unsigned value = 0;
  for (const std::string& term : testing::split(formula, '^'))
    value ^= static_cast<unsigned>(address >> std::stoi(term.substr(1)) & 1);
  return value;
}

unsigned number(const nlohmann::json& map, const char* part, std::uint64_t address) {
  unsigned value = 0;
  unsigned place = 0;
  if (!map.contains(part)) return 0;
  for (const auto& formula : map[part]) value |= bit(formula, address) << place++;
  return value;
}

TEST(AddressMap, EveryMapSendsBurstsWhereTheTableOfTheReferenceDoes) {
  PLENA_NEEDS_SHARED();
  const auto text = read_text(shared_data() + "/dram/reference.json");
  ASSERT_TRUE(text.has_value());
  const auto maps = nlohmann::json::parse(*text)["maps_lsb_first"];
  std::mt19937_64 random(1);
  for (const char* preset_name : {"hbm2-2000", "hbm3-6400"}) {
    const DramPreset preset = *find_dram_preset(preset_name);
    const auto& of_standard = maps[preset.standard == Standard::Hbm2 ? "HBM2" : "HBM3"];
    for (const MapKind kind : {MapKind::Mop, MapKind::Row, MapKind::Bgi}) {
      const auto map = AddressMap::make(preset, kind, 1, 0);
      ASSERT_TRUE(map.has_value());
      const auto& expected = of_standard[std::string(name(kind))];
      for (int i = 0; i < 2000; ++i) {
        const std::uint64_t address = random() % preset.organisation.channel_bytes();
        const BurstPlace place = map->place(address);
        const BankCoordinates at = coordinates(preset.standard, place.bank);
        ASSERT_EQ(at.pseudo_channel, number(expected, "pc", address));
        ASSERT_EQ(at.stack, number(expected, "sid", address));
        ASSERT_EQ(at.group, number(expected, "bg", address));
        ASSERT_EQ(at.bank, number(expected, "bank", address));
        ASSERT_EQ(place.row, number(expected, "row", address));
        ASSERT_EQ(place.column, number(expected, "col", address));
      }
    }
  }
}

TEST(AddressMap, TheInterleaveBitsChooseTheChannelAndAreCutOut) {
  const DramPreset preset = *find_dram_preset("hbm2-2000");
  const auto one = AddressMap::make(preset, MapKind::Mop, 1, 0);
  const auto eight = AddressMap::make(preset, MapKind::Mop, 8, 256);
  ASSERT_TRUE(one.has_value() && eight.has_value());
  // Bits 8, 9, 10 are the channel; what is left moves down.
  const std::uint64_t address = (std::uint64_t{0x12345} << 11) | (std::uint64_t{5} << 8) | 0xA0;
  const BurstPlace expected = one->place((std::uint64_t{0x12345} << 8) | 0xA0);
  const BurstPlace place = eight->place(address);
  EXPECT_EQ(place.channel, 5U);
  EXPECT_EQ(place.bank, expected.bank);
  EXPECT_EQ(place.row, expected.row);
  EXPECT_EQ(place.column, expected.column);
}

TEST(AddressMap, RefusesChannelsAndInterleavesThatAreNoPowersOfTwo) {
  const DramPreset preset = *find_dram_preset("hbm2-2000");
  EXPECT_FALSE(AddressMap::make(preset, MapKind::Mop, 6, 256).has_value());
  EXPECT_FALSE(AddressMap::make(preset, MapKind::Mop, 0, 256).has_value());
  EXPECT_FALSE(AddressMap::make(preset, MapKind::Mop, 8, 16).has_value());
  EXPECT_FALSE(AddressMap::make(preset, MapKind::Mop, 8, 96).has_value());
}

}  // namespace
}  // namespace plena::dram
