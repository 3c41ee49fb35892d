#include "plena/check/rs_transfer.h"

namespace plena {

namespace {

constexpr std::uint64_t kHbmBlock = 64;  // bytes the emulator's memory moves at a time

}  // namespace

RsTransfer RsTransfer::of(const Instruction& i, const Settings& s) {
  RsTransfer t;
  const bool kv = i.order != 0;
  switch (i.op) {
    case Op::H_PREFETCH_M:
      t.type = kv ? s.hbm_m_kv_type : s.hbm_m_weight_type;
      t.rows = s.hbm_m_prefetch_amount;
      t.length = s.mlen;
      return t;
    case Op::H_STORE_V:
      t.store = true;
      t.rows = s.hbm_v_writeback_amount;
      break;
    default:
      t.rows = s.hbm_v_prefetch_amount;
  }
  t.type = kv ? s.hbm_v_kv_type : s.hbm_v_act_type;
  t.length = s.vlen;
  return t;
}

bool RsTransfer::leaves_blocks(std::uint64_t row) const {
  return type.is_mx() && (row_start(row) % type.block != 0 || length % type.block != 0);
}

// For the 8-bit elements the emulator loads, a scale counts `block` bytes.
std::uint64_t RsTransfer::scale_address(std::uint64_t row) const {
  return base + scale + row_start(row) / type.block;
}

bool RsTransfer::cuts_scales(std::uint64_t row) const {
  return type.is_mx() && !store && scale_address(row) % kHbmBlock + length / type.block > kHbmBlock;
}

bool RsTransfer::leaves_hbm(std::uint64_t row, std::uint64_t hbm_size) const {
  if (base + row_start(row) + row_bytes() > hbm_size) return true;
  return type.is_mx() && scale_address(row) + length / type.block > hbm_size;
}

}  // namespace plena
