#include "plena/compiler/constant_pool.h"

#include <algorithm>

#include "plena/numerics/float_format.h"

namespace plena {

void ConstantPool::load(Emitter& emitter, Fp to, float value, std::string_view what) {
  const std::uint32_t bits = encode_fp(scalar_, value);
  auto at = std::ranges::find(entries_, bits);
  if (at == entries_.end()) at = entries_.insert(entries_.end(), bits);
  const auto entry = first_ + static_cast<std::uint64_t>(at - entries_.begin());
  emitter.emit(Op::S_LD_FP, {to, kZeroGp, entry}, what);
}

}  // namespace plena
