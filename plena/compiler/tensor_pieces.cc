#include "plena/compiler/tensor_pieces.h"

#include <utility>

namespace plena {

void TensorPieces::add(std::uint64_t count, std::function<void(Quantiser&)> append) {
  if (elements % whole_unit(type) == 0) {
    pieces.push_back({elements, std::move(append)});
  } else {
    auto& last = pieces.back().append;
    last = [first = std::move(last), second = std::move(append)](Quantiser& to) {
      first(to);
      second(to);
    };
  }
  elements += count;
}

QuantisedTensor quantise(const TensorPieces& tensor) {
  Quantiser all(tensor.type, tensor.scales);
  for (const TensorPiece& piece : tensor.pieces) piece.append(all);
  return std::move(all).finish();
}

}  // namespace plena
