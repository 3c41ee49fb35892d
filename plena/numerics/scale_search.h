// Quantising offline with the best scales. The machine itself stores by the floor rule of semantics
// 5.2, which has to look at the largest element only; weights are quantised once and can afford
// more.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plena/config/data_type.h"

namespace plena {

/// How the scale of an MX block is chosen.
enum class ScaleRule : std::uint8_t {
  Floor,       // semantics 5.2: from the exponent of the largest element
  LeastError,  // the power of two that makes the sum of squared errors least
};

/// Quantises n f32 values, whole blocks of an Mx type that start on a whole byte, each block with
/// the scale of least squared error: a smaller one than the floor rule's where clipping the largest
/// element pays, the next larger one where saturating it does not. Between equal errors the floor
/// rule's scale wins, then the larger. Writes n*width/8 element bytes and n/block scale bytes;
/// blocks without a finite largest element come out as HbmCodec::encode() makes them.
void encode_with_least_error(DataType type, const float* values, std::size_t n,
                             std::uint8_t* elements, std::uint8_t* scales);

}  // namespace plena
