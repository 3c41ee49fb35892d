#include "plena/dram/policy.h"

namespace plena::dram {

std::string_view name(RefreshMode mode) {
  switch (mode) {
    case RefreshMode::AllBank:
      return "all-bank";
    case RefreshMode::PerBank:
      return "per-bank";
    case RefreshMode::None:
      break;
  }
  return "none";
}

Result<RefreshMode> find_refresh_mode(std::string_view wanted) {
  for (const RefreshMode mode : {RefreshMode::AllBank, RefreshMode::PerBank, RefreshMode::None})
    if (name(mode) == wanted) return mode;
  return fail_with_hint(ErrorCode::Usage, fmt::format("unknown refresh mode '{}'", wanted),
                        "known modes: all-bank, per-bank, none");
}

}  // namespace plena::dram
