// One element of HBM: values of codes and codes of values, without packing or scales (semantics
// 5.1 … 5.3).
#pragma once

#include <cstdint>

#include "plena/config/data_type.h"

namespace plena {

/// Code, without sign, of the largest finite element of a floating-point type.
std::uint32_t largest_magnitude_code(ElementType element);

/// Code of an element of an MX block: x, already divided by the block's scale and finite, to the
/// nearest element, ties to even, saturated (semantics 5.2).
std::uint32_t round_to_block_element(ElementType element, double x);

/// Code of a plain element (semantics 5.3): infinity, NaN and saturation as the type has them.
std::uint32_t round_to_plain_element(ElementType element, double x);

}  // namespace plena
