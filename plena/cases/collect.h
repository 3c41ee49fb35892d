// Finds the cases and bundles under the folders a user names.
#pragma once

#include <string>
#include <vector>

#include "plena/base/error.h"

namespace plena {

/// `paths` that are case or bundle folders, or all of those below them, each list in the order of
/// their names. A path with none is an error.
Result<std::vector<std::string>> collect_cases(const std::vector<std::string>& paths);

/// Runs one folder, whichever kind it is; a line for each thing that differs.
Result<std::vector<std::string>> run_case_folder(const std::string& folder);

}  // namespace plena
