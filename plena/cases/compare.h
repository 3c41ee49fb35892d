// What differs between two machines, in words.
#pragma once

#include <string>
#include <vector>

#include "plena/machine/machine.h"

namespace plena {

/// A line for each memory that differs: how many elements, the first of them, both values. Only
/// what was touched on either side is looked at.
std::vector<std::string> memory_differences(const Machine& expected, const Machine& got);

}  // namespace plena
