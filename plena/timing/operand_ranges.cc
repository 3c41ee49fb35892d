#include "plena/timing/operand_ranges.h"

namespace plena {

namespace {

constexpr std::uint64_t kEmulatorEntries = 1024;  // of INT_MEM and FP_MEM (rs-memories)

}  // namespace

RangeRules::RangeRules(const Settings& settings, const Dialect& dialect)
    : mlen(settings.mlen),
      blen(settings.blen),
      hlen(settings.hlen),
      vlen(settings.vlen),
      heads(settings.heads()),
      vram_elements(settings.vector_sram_size * settings.vlen),
      fp_entries(dialect.has(RsSwitch::Memories) ? kEmulatorEntries : settings.fp_sram_depth),
      int_entries(dialect.has(RsSwitch::Memories) ? kEmulatorEntries : settings.int_sram_depth),
      row_step(dialect.has(RsSwitch::TileAddress) ? settings.mlen : settings.vlen),
      mv_lanes(dialect.has(RsSwitch::Mv) ? settings.blen : settings.mlen),
      wraps(dialect.has(RsSwitch::Decode)),
      head_offset_counts_rows(dialect.has(RsSwitch::TileAddress)),
      matrix_first(dialect.has(RsSwitch::Mv)),
      transposed_rows(dialect.has(RsSwitch::Mv)) {}

}  // namespace plena
