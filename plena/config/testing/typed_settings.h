// Settings that differ from the default in their types alone. For tests only.
#pragma once

#include "plena/config/settings.h"

namespace plena::testing {

/// `on_chip` for both SRAMs and scalars, `in_hbm` for weights, KV cache and activations.
inline Settings settings_of(DataType on_chip, DataType in_hbm) {
  Settings settings;
  settings.matrix_sram_type = settings.vector_sram_type = settings.scalar_fp = on_chip;
  settings.hbm_m_weight_type = settings.hbm_m_kv_type = in_hbm;
  settings.hbm_v_act_type = settings.hbm_v_kv_type = in_hbm;
  return settings;
}
inline Settings settings_of(DataType type) {
  return settings_of(type, type);
}

inline constexpr DataType kPlainBf16 = DataType::plain(kBf16);
inline constexpr DataType kPlainFp32 = DataType::plain(kFp32);

}  // namespace plena::testing
