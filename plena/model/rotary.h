// The inverse frequencies of rotary positions, plain and in the ways published models stretch them.
#pragma once

#include <cstdint>

#include "plena/model/model.h"

namespace plena {

/// theta^(-2i / width) for each pair i of the `width` elements that turn.
RotaryTable plain_rotary(double theta, std::uint32_t width);

}  // namespace plena
