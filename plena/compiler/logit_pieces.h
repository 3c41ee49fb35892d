// Logits that Vector SRAM does not hold all at once: a piece of them after the other, in the same
// rows. The program stops at a C_BREAK behind each piece but the last, for the host to read it: no
// format of HBM has to hold what is read exactly.
#pragma once

#include <cstddef>
#include <functional>

#include "plena/compiler/kernels.h"

namespace plena {

/// Whether `op` is the product whose outputs come piece by piece.
bool comes_in_pieces(const KernelContext& context, const Operator& op);

/// Operator `first` of the ending, the product of the logits, and those behind it for one piece
/// after the other; `emit` is given each of them, the product with the piece's outputs alone.
void emit_logit_pieces(const KernelContext& context, const LayerKind& ending, std::size_t first,
                       const std::function<void(const Operator&)>& emit);

}  // namespace plena
