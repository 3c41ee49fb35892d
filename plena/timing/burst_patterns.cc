#include "plena/timing/burst_patterns.h"

#include <algorithm>
#include <bit>
#include <map>

namespace plena {

namespace {

constexpr std::size_t kPlacesFetched = 40;

// Further apart than any two rows of one transfer.
constexpr std::uint64_t kFar = ~std::uint64_t{0};

// `row_bits`: log2 of the bytes from a row of all banks to the next.
PatternOrigin origin_of(const TransferRows& rows, int row_bits) {
  const HbmRow all = rows.extent();
  PatternOrigin origin;
  const auto place = [&](bool is_scale, std::uint64_t address, std::uint64_t bytes) {
    const std::uint64_t last = address + std::max<std::uint64_t>(bytes, 1) - 1;
    origin.address[is_scale] = address >> row_bits << row_bits;
    origin.first_row[is_scale] = static_cast<std::uint32_t>(address >> row_bits);
    origin.last_row[is_scale] = static_cast<std::uint32_t>(last >> row_bits);
  };
  place(false, all.element_address, all.element_bytes);
  if (rows.block == 0) {
    place(true, all.element_address, 0);
  } else {
    place(true, all.scale_address, all.scale_bytes);
  }
  return origin;
}

// How far the scales' rows are from the elements', where a burst may be of both.
std::uint64_t distance(const PatternOrigin& origin) {
  const bool apart =
      origin.last_row[0] < origin.first_row[1] || origin.last_row[1] < origin.first_row[0];
  return apart ? kFar : std::uint32_t{origin.first_row[1] - origin.first_row[0]};
}

BurstPattern lay_out(const TransferRows& rows, const PatternOrigin& origin,
                     const dram::Controller& controller) {
  BurstPattern pattern;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> places;  // by bank and row
  std::vector<std::uint64_t> addresses;
  std::uint32_t begin = 0;
  for_each_burst(
      rows,
      [&](std::uint64_t address, std::uint32_t index) {
        const HbmRow row = rows.row(index);
        const bool is_element = address + kBurstBytes > row.element_address &&
                                address < row.element_address + row.element_bytes;
        const dram::BurstPlace place = controller.place(address);
        const std::uint32_t bank = place.channel * dram::kMaxBanks + place.bank;
        const auto burst = static_cast<std::uint32_t>(pattern.bursts.size());
        const auto next = static_cast<std::uint32_t>(pattern.places.size());
        const auto [found, is_new] = places.try_emplace({bank, place.row}, next);
        if (is_new) {
          pattern.places.push_back({.row = place.row - origin.first_row[!is_element],
                                    .bank = static_cast<std::uint16_t>(bank),
                                    .is_scale = !is_element});
          pattern.lasts.push_back(0);
        }
        pattern.lasts[found->second] = burst;
        pattern.bursts.push_back({.offset = address - origin.address[!is_element],
                                  .place = found->second,
                                  .is_scale = !is_element});
        addresses.push_back(address);
      },
      [&](std::uint32_t, const HbmRow& row) {
        const auto end = static_cast<std::uint32_t>(addresses.size());
        const std::uint64_t first = row.element_address / kBurstBytes * kBurstBytes;
        const bool shares = begin > 0 && addresses[begin - 1] == first;
        pattern.rows.push_back({shares ? begin - 1 : begin, end});
        begin = end;
      });
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

std::pair<std::shared_ptr<const BurstPattern>, PatternOrigin> BurstPatterns::of(
    const TransferRows& rows, const dram::Controller& controller) {
  const std::uint64_t period = controller.row_period();
  const HbmRow first = rows.row(0);
  const PatternOrigin origin = origin_of(rows, std::countr_zero(period));
  // Where in its byte and its block a row begins decides how many bytes it takes.
  const std::uint64_t alignment =
      rows.in_bytes ? 0 : rows.first % (8 * std::max<std::uint64_t>(rows.block, 1));
  const Key key = {
      first.element_address & (period - 1),
      rows.block == 0 ? 0 : first.scale_address & (period - 1),
      distance(origin),
      alignment,
      rows.stride,
      std::uint64_t{rows.count} << 32 | rows.length,
      std::uint64_t{rows.width} << 32 | rows.block,
      (rows.write ? 4U : 0U) | (rows.in_bytes ? 2U : 0U) | (rows.whole_codes ? 1U : 0U)};
  auto* expected = latest_ == nullptr ? nullptr : latest_->second.next;
  if (expected == nullptr || expected->first != key) {
    expected = &*known_.try_emplace(key).first;
    if (latest_ != nullptr) latest_->second.next = expected;
  }
  Known* before = latest_ == nullptr ? nullptr : &latest_->second;
  latest_ = expected;
  if (expected->second.pattern != nullptr) {
    if (before != nullptr) before->next_places = expected->second.pattern->places.data();
    // What comes next will be looked at soon.
    constexpr std::size_t kPlacesALine = 64 / sizeof(BurstPattern::Place);
    const BurstPattern::Place* places = expected->second.next_places;
    __builtin_prefetch(expected->second.next);
    for (std::size_t i = 0; places != nullptr && i < kPlacesFetched; i += kPlacesALine)
      __builtin_prefetch(places + i);
    return {expected->second.pattern, origin};
  }

  BurstPattern pattern = lay_out(rows, origin, controller);
  pattern.number = met_++;
  if (bursts_ += pattern.bursts.size(); bursts_ > kMostBursts) {
    known_.clear();
    bursts_ = pattern.bursts.size();
    latest_ = &*known_.try_emplace(key).first;
  }
  latest_->second.pattern = std::make_shared<const BurstPattern>(std::move(pattern));
  return {latest_->second.pattern, origin};
}

}  // namespace plena
