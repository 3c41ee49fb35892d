#include "plena/cli/engine_options.h"

namespace plena {

namespace {

constexpr std::uint64_t kMostMib = std::uint64_t{1} << 20;  // a terabyte
constexpr unsigned kMostThreads = 1024;

}  // namespace

void add_engine_options(CLI::App& command, EngineOptions& options) {
  constexpr const char* kGroup = "Engine (the results are the same with any)";
  command
      .add_option("--tile-cache", options.tile_cache_mib,
                  "Memory for tiles that stay decoded; 0: decode at every prefetch")
      ->check(CLI::Range(std::uint64_t{0}, kMostMib))
      ->type_name("MIB")
      ->default_str(fmt::format("{}", options.tile_cache_mib))
      ->group(kGroup);
  command
      .add_option("--threads", options.threads,
                  "Threads for products of large tiles; default: one a processor")
      ->check(CLI::Range(1U, kMostThreads))
      ->type_name("N")
      ->group(kGroup);
  command.add_flag("--no-fusion{false}", options.fuse, "Take instructions one at a time")
      ->group(kGroup);
}

}  // namespace plena
