// Overlapping intervals spread over lanes, none of which holds two at a time.
#pragma once

#include <cstddef>
#include <vector>

#include "plena/timing/unit.h"

namespace plena {

class Lanes {
 public:
  /// The first lane that is free from `begin` on; it is taken until `end`. At most as many lanes
  /// come about as intervals overlap, if they come in the order of their beginnings.
  std::size_t take(Cycle begin, Cycle end) {
    std::size_t lane = 0;
    while (lane < free_.size() && free_[lane] > begin) ++lane;
    if (lane == free_.size()) free_.push_back(0);
    free_[lane] = end;
    return lane;
  }

 private:
  std::vector<Cycle> free_;  // by lane: when its last interval ends
};

}  // namespace plena
