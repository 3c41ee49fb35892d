// Pages as a browser sees them, for tests: headless Chromium loads one, a script acts on it, and
// what the page has become comes back.
#pragma once

#include <cstdlib>
#include <string>

namespace plena {

/// Where Chromium is: $CHROMIUM, else what is installed under its name; empty when there is none.
std::string chromium();

/// Loads `page` and runs `script` in it, which says what it saw with `seen(name, value)`. Returns
/// that as a JSON object; errors of the page's own scripts are listed under "errors". An empty text
/// means that the browser did not come to the end.
std::string look_at_page(const std::string& page, const std::string& script);

}  // namespace plena

/// Skips a test, with one line, where Chromium is missing; with PLENA_REQUIRE_SHARED set (CI) it
/// fails instead.
#define PLENA_NEEDS_CHROMIUM()                                               \
  do {                                                                       \
    if (plena::chromium().empty()) {                                         \
      if (std::getenv("PLENA_REQUIRE_SHARED") != nullptr) {                  \
        FAIL() << "Chromium is required here: install the package chromium"; \
      }                                                                      \
      GTEST_SKIP() << "no Chromium: install the package chromium";           \
    }                                                                        \
  } while (false)
