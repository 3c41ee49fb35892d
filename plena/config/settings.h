// The settings of one machine (semantics 1): sizes, capacities, number formats and the latency
// entries of a plena_settings.toml, checked against every rule of that section.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plena/base/error.h"
#include "plena/config/data_type.h"

namespace plena {

/// One [X.LATENCY.NAME]: cycles with and without the DesignWare library (DC_EN 1 and 0).
struct LatencyColumns {
  std::uint32_t dc_lib_en = 0;
  std::uint32_t dc_lib_dis = 0;

  friend bool operator==(const LatencyColumns&, const LatencyColumns&) = default;
};

struct Settings {
  // Tile sizes, in elements. BLEN divides HLEN, HLEN divides MLEN, MLEN divides VLEN.
  std::uint32_t mlen = 64;
  std::uint32_t blen = 4;
  std::uint32_t hlen = 16;
  std::uint32_t vlen = 64;

  std::uint64_t matrix_sram_size = 4096;              // rows of MLEN
  std::uint64_t vector_sram_size = 4'194'304;         // rows of VLEN
  std::uint64_t hbm_size = std::uint64_t{128} << 30;  // bytes
  std::uint32_t hbm_m_prefetch_amount = 64;           // rows of MLEN, a multiple of MLEN
  std::uint32_t hbm_v_prefetch_amount = 4;            // rows of VLEN
  std::uint32_t hbm_v_writeback_amount = 4;           // rows of VLEN
  std::uint32_t int_sram_depth = 1024;                // entries
  std::uint32_t fp_sram_depth = 4096;                 // entries
  std::uint64_t max_loop_instructions = 0;            // 0: no limit

  DataType matrix_sram_type = DataType::plain(kBf16);
  DataType vector_sram_type = DataType::plain(kBf16);
  DataType scalar_fp = DataType::plain(kBf16);
  DataType hbm_m_weight_type = DataType::mx(kE4M3, 8);
  DataType hbm_m_kv_type = DataType::mx(kE4M3, 8);
  DataType hbm_v_act_type = DataType::mx(kE4M3, 8);
  DataType hbm_v_kv_type = DataType::mx(kE4M3, 8);

  // [X.LATENCY.NAME] entries of a settings file in cycles, both columns, and the one that DC_EN
  // picks of each; empty without a file (timing.md).
  std::uint32_t dc_en = 1;
  std::map<std::string, LatencyColumns, std::less<>> latency_columns;
  std::map<std::string, std::uint32_t, std::less<>> latency;

  // Integer keys of the format that have no effect here, kept for assembly text that names them.
  std::map<std::string, std::uint64_t, std::less<>> inert = {{"BROADCAST_AMOUNT", 4},
                                                             {"HBM_WIDTH", 512}};

  /// H: heads of the array.
  [[nodiscard]] std::uint32_t heads() const { return mlen / hlen; }

  friend bool operator==(const Settings&, const Settings&) = default;
};

/// Checks every rule of semantics 1; an error says which rule is broken and what would satisfy it.
Status check(const Settings& settings);

/// One `--set KEY=VALUE`: integer keys (HBM_SIZE=16GiB too) and type keys (by DataType::parse).
/// An unknown key or a value of the wrong kind is an error. Does not check().
Status set_value(Settings& settings, std::string_view assignment);

/// What loading a file found worth saying: unknown keys, a BROADCAST_AMOUNT other than MLEN/HLEN.
struct LoadedSettings {
  Settings settings;
  std::vector<std::string> warnings;  // each names the file and line
};

/// Reads a plena_settings.toml; `mode` picks its section (`analytic`, in any case), empty means its
/// [MODE] active. A required key that is missing is an error, also where several are: one error
/// names them all. The result is not check()ed, so that --set can still mend it.
Result<LoadedSettings> load_settings(const std::string& path, std::string_view mode = {});

/// The same for text at hand; `file` is what errors and warnings call it.
Result<LoadedSettings> parse_settings(std::string_view text, const std::string& file,
                                      std::string_view mode = {});

/// Every integer key by its settings name, for expressions in assembly text.
std::vector<std::pair<std::string, std::int64_t>> integer_symbols(const Settings& settings);

/// The settings as the text of a plena_settings.toml that load_settings() reads back.
std::string to_toml(const Settings& settings);

}  // namespace plena
