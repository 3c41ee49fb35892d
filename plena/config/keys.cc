#include "plena/config/keys.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "plena/base/near_miss.h"

namespace plena {

namespace {

// A tile's H x MLEN x MLEN accumulators are at most 32 * 2^28 floats: what a large host can hold.
constexpr std::uint64_t kLargestTile = 1U << 14;
// 32 times the largest HLEN: the bits of V_MASK.
constexpr std::uint64_t kLargestRow = 1U << 19;
// check() also bounds rows x row length; these keep that product inside 64 bits.
constexpr std::uint64_t kMostRows = std::uint64_t{1} << 40;
constexpr std::uint64_t kMostHbmBytes = std::uint64_t{1} << 44;
// INT_MEM and FP_MEM are held whole, so 64 MiB each.
constexpr std::uint64_t kMostEntries = 1U << 24;
// Rows of one transfer; its elements stay far inside 64 bits.
constexpr std::uint64_t kMostTransferRows = 1U << 24;

constexpr std::array kIntegerKeys = {
    IntegerKey{"MLEN", &Settings::mlen, nullptr, true, 1, kLargestTile},
    IntegerKey{"BLEN", &Settings::blen, nullptr, true, 1, kLargestTile},
    IntegerKey{"HLEN", &Settings::hlen, nullptr, true, 1, kLargestTile},
    IntegerKey{"VLEN", &Settings::vlen, nullptr, true, 1, kLargestRow},
    IntegerKey{"MATRIX_SRAM_SIZE", nullptr, &Settings::matrix_sram_size, true, 1, kMostRows},
    IntegerKey{"VECTOR_SRAM_SIZE", nullptr, &Settings::vector_sram_size, true, 1, kMostRows},
    IntegerKey{"HBM_SIZE", nullptr, &Settings::hbm_size, true, 1, kMostHbmBytes},
    IntegerKey{"HBM_M_Prefetch_Amount", &Settings::hbm_m_prefetch_amount, nullptr, true, 1,
               kMostTransferRows},
    IntegerKey{"HBM_V_Prefetch_Amount", &Settings::hbm_v_prefetch_amount, nullptr, true, 1,
               kMostTransferRows},
    IntegerKey{"HBM_V_Writeback_Amount", &Settings::hbm_v_writeback_amount, nullptr, true, 1,
               kMostTransferRows},
    IntegerKey{"INT_SRAM_DEPTH", &Settings::int_sram_depth, nullptr, false, 0, kMostEntries},
    IntegerKey{"FP_SRAM_DEPTH", &Settings::fp_sram_depth, nullptr, false, 0, kMostEntries},
    IntegerKey{"MAX_LOOP_INSTRUCTIONS", nullptr, &Settings::max_loop_instructions, false, 0,
               INT64_MAX},
    IntegerKey{"DC_EN", &Settings::dc_en, nullptr, false, 0, 1},
};

constexpr std::array kTypeKeys = {
    TypeKey{"MATRIX_SRAM_TYPE", &Settings::matrix_sram_type, true},
    TypeKey{"VECTOR_SRAM_TYPE", &Settings::vector_sram_type, true},
    TypeKey{"SCALAR_FP", &Settings::scalar_fp, true},
    TypeKey{"HBM_M_WEIGHT_TYPE", &Settings::hbm_m_weight_type, false},
    TypeKey{"HBM_M_KV_TYPE", &Settings::hbm_m_kv_type, false},
    TypeKey{"HBM_V_ACT_TYPE", &Settings::hbm_v_act_type, false},
    TypeKey{"HBM_V_KV_TYPE", &Settings::hbm_v_kv_type, false},
};

constexpr std::array<std::string_view, 2> kInertIntegerKeys = {"BROADCAST_AMOUNT", "HBM_WIDTH"};

constexpr std::array<std::string_view, 17> kLatencyNames = {
    "SYSTOLIC_PROCESSING_OVERHEAD",
    "VECTOR_LONGEST_OPERATE_CYCLES",
    "VECTOR_BASIC_CYCLES",
    "VECTOR_ADD_CYCLES",
    "VECTOR_MUL_CYCLES",
    "VECTOR_EXP_CYCLES",
    "VECTOR_PREFIX_SCAN_CYCLES",
    "VECTOR_SHIFT_CYCLES",
    "VECTOR_RECI_CYCLES",
    "VECTOR_MAX_CYCLES",
    "VECTOR_SUM_CYCLES",
    "SCALAR_FP_LONGEST_OPERATE_CYCLES",
    "SCALAR_FP_BASIC_CYCLES",
    "SCALAR_FP_EXP_CYCLES",
    "SCALAR_FP_SQRT_CYCLES",
    "SCALAR_FP_RECI_CYCLES",
    "SCALAR_INT_BASIC_CYCLES",
};

template <class Keys>
auto find_named(const Keys& keys, std::string_view name) {
  const auto found = std::ranges::find(keys, name, [](const auto& key) { return key.name; });
  return found == std::end(keys) ? nullptr : &*found;
}

}  // namespace

std::span<const IntegerKey> integer_keys() {
  return kIntegerKeys;
}

const IntegerKey* find_integer_key(std::string_view name) {
  return find_named(kIntegerKeys, name);
}

std::span<const TypeKey> type_keys() {
  return kTypeKeys;
}

const TypeKey* find_type_key(std::string_view name) {
  return find_named(kTypeKeys, name);
}

bool is_inert_integer_key(std::string_view name) {
  return std::ranges::find(kInertIntegerKeys, name) != kInertIntegerKeys.end();
}

std::span<const std::string_view> latency_names() {
  return kLatencyNames;
}

std::string suggest_key(std::string_view name) {
  std::vector<std::string_view> names(kInertIntegerKeys.begin(), kInertIntegerKeys.end());
  for (const auto& key : kIntegerKeys) names.push_back(key.name);
  for (const auto& key : kTypeKeys) names.push_back(key.name);
  names.insert(names.end(), kLatencyNames.begin(), kLatencyNames.end());
  return did_you_mean(name, names);
}

void resolve_latency(Settings& settings) {
  settings.latency.clear();
  for (const auto& [name, columns] : settings.latency_columns) {
    settings.latency[name] = settings.dc_en != 0 ? columns.dc_lib_en : columns.dc_lib_dis;
  }
}

}  // namespace plena
