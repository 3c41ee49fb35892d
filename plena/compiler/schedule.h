// The scheduling pass: the same program in an order in which the machine waits less.
//
// Small loops become copies of their bodies; then the instructions of each straight stretch are
// reordered and their registers renamed. Every memory holds the same bits in the end.
#pragma once

#include "plena/base/error.h"
#include "plena/compiler/listing.h"
#include "plena/config/settings.h"
#include "plena/isa/dialect.h"

namespace plena {

struct ScheduleInput {
  const Settings& settings;
  const Dialect& dialect;
  /// Transfers by way of different HBM address registers never share a byte that matters.
  bool bases_apart = false;
};

/// Errors: settings whose latencies make no sense.
Result<Listing> schedule(const Listing& listing, const ScheduleInput& input);

}  // namespace plena
