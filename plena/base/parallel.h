// One piece of work after the other on all cores.
#pragma once

#include <cstddef>
#include <functional>

#include "plena/base/error.h"

namespace plena {

/// Calls work(i) for i = 0 … count - 1, each once, on as many threads as there are cores; pieces
/// start in this order. After an error no new piece starts; the one with the least i is returned.
Status for_each_piece(std::size_t count, const std::function<Status(std::size_t)>& work);

}  // namespace plena
