// The near name for a mistyped one, so that an error can suggest it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace plena {

/// Edits (insert, delete, replace, swap of neighbours) between two names, in any case.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate nearest to `name`, or nothing when none is near enough to be what was meant: at
/// most a third of the longer name's letters may differ.
std::optional<std::string_view> nearest_name(std::string_view name,
                                             std::span<const std::string_view> candidates);

/// `did you mean X?`, or an empty string.
std::string did_you_mean(std::string_view name, std::span<const std::string_view> candidates);

}  // namespace plena
