#include "plena/base/near_miss.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace plena {

namespace {

// Longer text is no mistyped name, and would only cost time.
constexpr std::size_t kLongestName = 64;

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace

// Optimal string alignment over three rows of the distance table.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> above(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                           lower(a[i - 2]) == lower(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

std::optional<std::string_view> nearest_name(std::string_view name,
                                             std::span<const std::string_view> candidates) {
  if (name.empty() || name.size() > kLongestName) return std::nullopt;
  std::optional<std::string_view> nearest;
  std::size_t smallest = 0;
  for (const auto candidate : candidates) {
    const std::size_t distance = edit_distance(name, candidate);
    const std::size_t allowed =
        std::max<std::size_t>(1, std::max(name.size(), candidate.size()) / 3);
    if (distance > allowed || (nearest && distance >= smallest)) continue;
    nearest = candidate;
    smallest = distance;
  }
  return nearest;
}

std::string did_you_mean(std::string_view name, std::span<const std::string_view> candidates) {
  const auto nearest = nearest_name(name, candidates);
  return nearest ? fmt::format("did you mean {}?", *nearest) : std::string();
}

}  // namespace plena
