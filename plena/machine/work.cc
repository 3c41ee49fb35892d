#include "plena/machine/work.h"

namespace plena {

std::uint64_t multiply_adds_of(Op op, const Settings& settings, const Dialect& dialect) {
  const std::uint64_t mlen = settings.mlen;
  const std::uint64_t blen = settings.blen;
  switch (op) {
    case Op::M_MM:
    case Op::M_TMM:
      return blen * blen * mlen;
    case Op::M_BMM:
    case Op::M_BTMM:  // H heads of MLEN x HLEN by HLEN x MLEN
      return mlen * mlen * mlen;
    case Op::M_MV:
    case Op::M_TMV:
      return mlen * (dialect.has(RsSwitch::Mv) ? blen : mlen);
    case Op::M_BMV:
    case Op::M_BTMV:
      return mlen * mlen;
    default:
      return 0;
  }
}

}  // namespace plena
