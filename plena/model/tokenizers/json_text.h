// Small things the readers of tokenizer.json share.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "plena/base/error.h"

namespace plena {

/// The member, or null.
inline const nlohmann::json& member(const nlohmann::json& object, const char* key) {
  static const nlohmann::json kNull;
  const auto at = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && at != object.end() ? *at : kNull;
}

/// `type` of a step, or an empty string.
inline std::string type_of(const nlohmann::json& object) {
  const auto& type = member(object, "type");
  return type.is_string() ? type.get<std::string>() : "";
}

inline bool flag_of(const nlohmann::json& object, const char* key, bool otherwise) {
  const auto& value = member(object, key);
  return value.is_boolean() ? value.get<bool>() : otherwise;
}

inline tl::unexpected<Error> unknown_kind(std::string_view what, const std::string& kind,
                                          std::string_view known) {
  return fail_with_hint(ErrorCode::Unsupported, fmt::format("unknown {} {}", what, kind),
                        fmt::format("known ones: {}", known));
}

/// The text with every `from` replaced; an empty `from` is nowhere.
inline std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string replaced;
  while (!from.empty()) {
    const auto at = text.find(from);
    if (at == std::string_view::npos) break;
    replaced += text.substr(0, at);
    replaced += to;
    text.remove_prefix(at + from.size());
  }
  replaced += text;
  return replaced;
}

}  // namespace plena
