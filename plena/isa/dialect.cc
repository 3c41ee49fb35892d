#include "plena/isa/dialect.h"

#include <array>
#include <optional>

namespace plena {

namespace {

constexpr std::array<std::string_view, kRsSwitchCount> kSwitchNames = {
    "rs-decode",    "rs-registers",    "rs-tile-address", "rs-mv",         "rs-bmm-scale",
    "rs-bmm-lanes", "rs-accumulators", "rs-sum-order",    "rs-mask-merge", "rs-sub-order",
    "rs-exp-clamp", "rs-max",          "rs-topk",         "rs-break",      "rs-loops",
    "rs-mx",        "rs-hbm-bytes",    "rs-memories"};

template <class Enum, class NameOf>
std::optional<Enum> find_named(std::string_view name, std::size_t count, NameOf name_of) {
  for (std::size_t i = 0; i < count; ++i) {
    if (name_of(static_cast<Enum>(i)) == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

std::string known_names() {
  std::string names = "plena or plena-rs, then any of";
  for (std::size_t i = 1; i < kExtensionCount; ++i) {
    names += fmt::format(" +{}", extension_name(static_cast<Extension>(i)));
  }
  for (const auto name : kSwitchNames) names += fmt::format(" +{}", name);
  return names;
}

}  // namespace

std::string_view rs_switch_name(RsSwitch rs_switch) {
  return kSwitchNames[static_cast<std::size_t>(rs_switch)];
}

Dialect Dialect::plena_rs() {
  Dialect dialect;
  dialect.extensions_.set();
  dialect.extensions_.reset(static_cast<std::size_t>(Extension::Base));
  dialect.switches_.set();
  return dialect;
}

Result<Dialect> Dialect::parse(std::string_view spec) {
  Dialect dialect;
  bool first = true;
  for (std::size_t begin = 0; begin <= spec.size(); first = false) {
    const std::size_t end = std::min(spec.find('+', begin), spec.size());
    const std::string_view part = spec.substr(begin, end - begin);
    begin = end + 1;
    if (first && part == "plena") continue;
    if (first && part == "plena-rs") {
      dialect = plena_rs();
      continue;
    }
    const auto extension = find_named<Extension>(part, kExtensionCount, extension_name);
    const auto rs_switch = find_named<RsSwitch>(part, kRsSwitchCount, rs_switch_name);
    if (!first && extension && *extension != Extension::Base) {
      dialect.enable(*extension);
    } else if (!first && rs_switch) {
      dialect.enable(*rs_switch);
    } else {
      return fail_with_hint(
          ErrorCode::Usage,
          fmt::format("unknown part '{}' of the instruction set '{}'", part, spec), known_names());
    }
  }
  return dialect;
}

std::string Dialect::name() const {
  if (*this == plena_rs()) return "plena-rs";
  std::string name = "plena";
  for (std::size_t i = 1; i < kExtensionCount; ++i) {
    if (extensions_[i]) name += fmt::format("+{}", extension_name(static_cast<Extension>(i)));
  }
  for (std::size_t i = 0; i < kRsSwitchCount; ++i) {
    if (switches_[i]) name += fmt::format("+{}", kSwitchNames[i]);
  }
  return name;
}

}  // namespace plena
