#include "plena/timing/burst_patterns.h"

namespace plena {

namespace {

BurstPattern lay_out(const TransferRows& rows, const dram::Controller& controller) {
  BurstPattern pattern;
  pattern.banks.assign(controller.settings().channels, 0);
  for_each_burst(
      rows,
      [&](std::uint64_t address, std::uint32_t) {
        const dram::BurstPlace place = controller.place(address);
        pattern.banks[place.channel] |= dram::only(place.bank);
        ++pattern.bursts;
      },
      [](std::uint32_t, const HbmRow&) {});
  return pattern;
}

}  // namespace

std::size_t BurstPatterns::Hash::operator()(const Key& key) const {
  std::uint64_t hash = 0;
  for (const std::uint64_t word : key) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15U;
    hash ^= hash >> 32;
  }
  return hash;
}

const BurstPattern& BurstPatterns::of(const TransferRows& rows,
                                      const dram::Controller& controller) {
  const Key key = {
      rows.base % controller.row_period(),
      rows.first,
      rows.stride,
      rows.scale,
      std::uint64_t{rows.count} << 32 | rows.length,
      std::uint64_t{rows.width} << 32 | rows.block,
      (rows.write ? 4U : 0U) | (rows.in_bytes ? 2U : 0U) | (rows.whole_codes ? 1U : 0U)};
  const auto [found, is_new] = known_.try_emplace(key);
  if (is_new) {
    found->second = lay_out(rows, controller);
    found->second.number = met_++;
  }
  return found->second;
}

}  // namespace plena
