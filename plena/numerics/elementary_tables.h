// Whole functions of 16-bit formats as tables, for kernels that gather from them.
#pragma once

#include <cstdint>

#include "plena/config/data_type.h"

namespace plena {

/// Results by input bits, 65,536 of them, for kBf16 and kFp16; nullptr for other formats. Built on
/// the first call, safely from several threads.
const std::uint16_t* exp_table(ElementType format);
const std::uint16_t* reciprocal_table(ElementType format);

}  // namespace plena
