// Loops that become copies of their bodies, where the copies are few.
#pragma once

#include "plena/compiler/listing.h"

namespace plena {

/// Unrolls loops whose trip count is constant and whose counter nobody else uses: those whose
/// copies are at most `whole` instructions disappear, others of straight-line code get the largest
/// number of copies, a divisor of the trip count, that stays within `part`.
Listing unroll(const Listing& listing, std::size_t whole, std::size_t part);

}  // namespace plena
