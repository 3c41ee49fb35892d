// Names of files of a case, and parsing of JSON inputs with the library's exceptions turned into
// errors that name the file.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plena/base/error.h"

namespace plena {

inline std::string path_in(const std::string& folder, const std::string& name) {
  return (std::filesystem::path(folder) / name).string();
}

/// parse() works on JSON and returns a Result; what it throws becomes a Format error.
template <class Parse>
auto with_json_errors(const std::string& path, Parse&& parse) -> decltype(parse()) {
  try {
    return std::forward<Parse>(parse)();
  } catch (const nlohmann::json::exception& e) {
    return fail_with_hint(ErrorCode::Format, fmt::format("{}: {}", path, e.what()),
                          "docs/testing.md describes cases and bundles");
  } catch (const std::logic_error& e) {  // std::stoull, or a number's name
    return fail(ErrorCode::Format, "{}: {} is not a whole number from 0", path, e.what());
  }
}

}  // namespace plena
