#include "plena/cases/collect.h"

#include <algorithm>
#include <filesystem>

#include "plena/cases/bundle.h"
#include "plena/cases/case.h"

namespace plena {

namespace {

namespace fs = std::filesystem;

bool is_runnable(const std::string& folder) {
  return is_case_folder(folder) || is_bundle_folder(folder);
}

Result<std::vector<std::string>> collect_below(const std::string& root) {
  std::vector<std::string> found;
  std::error_code error;
  fs::recursive_directory_iterator walk(root, error);
  for (; !error && walk != fs::recursive_directory_iterator(); walk.increment(error)) {
    std::error_code ignored;
    if (!walk->is_directory(ignored) || !is_runnable(walk->path().string())) continue;
    found.push_back(walk->path().string());
    walk.disable_recursion_pending();
  }
  if (error) return fail(ErrorCode::Io, "cannot list {}: {}", root, error.message());
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

Result<std::vector<std::string>> collect_cases(const std::vector<std::string>& paths) {
  std::vector<std::string> all;
  for (const std::string& path : paths) {
    if (is_runnable(path)) {
      all.push_back(path);
      continue;
    }
    auto below = collect_below(path);
    if (!below) return below;
    if (below->empty()) {
      return fail_with_hint(ErrorCode::Usage, fmt::format("there is no case in {}", path),
                            "a case is a folder with a case.json or a bundle.json");
    }
    all.insert(all.end(), below->begin(), below->end());
  }
  return all;
}

Result<std::vector<std::string>> run_case_folder(const std::string& folder) {
  if (is_bundle_folder(folder)) {
    auto bundle = load_bundle(folder);
    if (!bundle) return forward_error(bundle);
    return run_bundle(*bundle);
  }
  auto test = load_case(folder);
  if (!test) return forward_error(test);
  return run_case(*test);
}

}  // namespace plena
