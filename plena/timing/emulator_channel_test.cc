// One channel may stand for four: the requests of a block lie in the same bank of each.
#include "plena/timing/emulator_channel.h"

#include <random>

#include <gtest/gtest.h>

namespace plena {
namespace {

// MOP4CLXOR over HBM2 with eight channels, from the low end of a request's number: two column bits,
// channel, pseudo-channel, bank group, bank, three column bits, row; then the channel,
// pseudo-channel and bank group xored with the column's five bits.
struct RequestPlace {
  std::uint64_t channel, pseudo_channel, group, bank, row;
};
RequestPlace map_request(std::uint64_t number) {
  const std::uint64_t column = (number & 3) | (number >> 10 & 7) << 2;
  return {(number >> 2 & 7) ^ (column & 7), (number >> 5 & 1) ^ (column >> 3 & 1),
          (number >> 6 & 3) ^ (column >> 4 & 3), number >> 8 & 3, number >> 13};
}

TEST(EmulatorChannel, RequestsOfABlockLieInOneBankOfFourChannels) {
  std::mt19937_64 random(3);
  for (int k = 0; k < 20'000; ++k) {
    const std::uint64_t block = random() >> 28;
    const EmulatorPlace place = emulator_place(block);
    unsigned channels = 0;
    for (std::uint64_t request = 0; request < 4; ++request) {
      const RequestPlace expected = map_request(4 * block + request);
      channels |= 1U << expected.channel;
      EXPECT_EQ(place.group, 4 * expected.pseudo_channel + expected.group);
      EXPECT_EQ(place.bank, 4 * place.group + expected.bank);
      EXPECT_EQ(place.row, expected.row);
    }
    EXPECT_EQ(channels, place.half == 0 ? 0x0FU : 0xF0U) << block;
  }
}

}  // namespace
}  // namespace plena
