#include "plena/cli/number_checks.h"

#include <cstdlib>

#include <fmt/format.h>

namespace plena {

std::string check_number_from_zero(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  const bool whole = !text.empty() && *end == '\0';
  return whole && value >= 0 ? "" : fmt::format("'{}' is not a number of at least 0", text);
}

}  // namespace plena
