// The keys of a settings file, each described once: loading, --set, assembly symbols and writing
// a file all read these rows.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "plena/config/settings.h"

namespace plena {

/// An integer key of [X.CONFIG]. Exactly one of the two members is named.
struct IntegerKey {
  std::string_view name;
  std::uint32_t Settings::* narrow = nullptr;
  std::uint64_t Settings::* wide = nullptr;
  bool required = false;  // in a file
  std::uint64_t smallest = 0;
  std::uint64_t largest = 0;  // what this program can hold, see keys.cc

  [[nodiscard]] std::uint64_t get(const Settings& settings) const {
    return narrow != nullptr ? settings.*narrow : settings.*wide;
  }
  /// The value must fit the member: see fits().
  void set(Settings& settings, std::uint64_t value) const {
    if (narrow != nullptr) {
      settings.*narrow = static_cast<std::uint32_t>(value);
    } else {
      settings.*wide = value;
    }
  }
  [[nodiscard]] bool fits(std::uint64_t value) const {
    return narrow == nullptr || value <= UINT32_MAX;
  }
};
std::span<const IntegerKey> integer_keys();
const IntegerKey* find_integer_key(std::string_view name);

/// A data type of [X.PRECISION]. SRAM and scalar types are what instructions compute in.
struct TypeKey {
  std::string_view name;
  DataType Settings::* member = nullptr;
  bool computes = false;  // signed floating-point values that f32 holds (semantics 4)
};
std::span<const TypeKey> type_keys();
const TypeKey* find_type_key(std::string_view name);

/// Keys of the format that are read and have no effect (semantics 1).
bool is_inert_integer_key(std::string_view name);
inline constexpr std::string_view kInertTypeKey = "HBM_V_INT_TYPE";

/// The names [X.LATENCY] may hold (timing.md uses some of them).
std::span<const std::string_view> latency_names();

/// `did you mean MLEN?` over the keys of all kinds, or an empty string.
std::string suggest_key(std::string_view name);

/// Puts the column that dc_en picks into settings.latency.
void resolve_latency(Settings& settings);

}  // namespace plena
