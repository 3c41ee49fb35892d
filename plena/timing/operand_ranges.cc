#include "plena/timing/operand_ranges.h"

namespace plena {

RangeRules::RangeRules(const Machine& machine)
    : mlen(machine.settings.mlen),
      blen(machine.settings.blen),
      hlen(machine.settings.hlen),
      vlen(machine.settings.vlen),
      heads(machine.settings.heads()),
      row_step(machine.dialect.has(RsSwitch::TileAddress) ? machine.settings.mlen
                                                          : machine.settings.vlen),
      mv_lanes(machine.dialect.has(RsSwitch::Mv) ? machine.settings.blen : machine.settings.mlen),
      wraps(machine.dialect.has(RsSwitch::Decode)),
      head_offset_counts_rows(machine.dialect.has(RsSwitch::TileAddress)),
      matrix_first(machine.dialect.has(RsSwitch::Mv)),
      transposed_rows(machine.dialect.has(RsSwitch::Mv)) {}

}  // namespace plena
