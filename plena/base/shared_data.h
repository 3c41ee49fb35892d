// Where tests find the shared specification data: $PLENA_SHARED, else ../shared beside the
// project. For tests only; the product reads nothing from there.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace plena {

/// Path of the shared data folder, or an empty string when there is none.
inline std::string shared_data() {
  const char* named = std::getenv("PLENA_SHARED");
#ifdef PLENA_SOURCE_DIR
  const std::filesystem::path fallback = std::filesystem::path(PLENA_SOURCE_DIR) / ".." / "shared";
#else
  const std::filesystem::path fallback = "../shared";
#endif
  const std::filesystem::path folder = named != nullptr ? std::filesystem::path(named) : fallback;
  std::error_code ignored;
  return std::filesystem::is_directory(folder, ignored) ? folder.lexically_normal().string() : "";
}

}  // namespace plena

/// Skips a test, with one line, where the shared data is missing; with PLENA_REQUIRE_SHARED set
/// (CI) it fails instead.
#define PLENA_NEEDS_SHARED()                                                                \
  do {                                                                                      \
    if (plena::shared_data().empty()) {                                                     \
      if (std::getenv("PLENA_REQUIRE_SHARED") != nullptr) {                                 \
        FAIL() << "shared data is required here: set PLENA_SHARED to its folder";           \
      }                                                                                     \
      GTEST_SKIP() << "no shared data: set PLENA_SHARED to its folder (default ../shared)"; \
    }                                                                                       \
  } while (false)
