#include "plena/compiler/rope_table.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include <fmt/format.h>

namespace plena {

namespace {

constexpr std::uint32_t kMaxTerms = 4;
constexpr double kUselessError = 0x1p-6;  // cosines this far off no longer turn anything

// Cosines and sines of all positions, [context][2][mlen]; padding lanes are 0.
std::vector<double> exact_table(const LlamaConfig& config, const LlamaTiling& tiling) {
  const std::uint32_t mlen = tiling.mlen;
  std::vector<double> table(std::size_t{config.context} * 2 * mlen);
  std::vector<double> frequency(mlen);
  for (std::uint32_t lane = 0; lane < mlen; ++lane) {
    const std::uint32_t pair = lane % tiling.heads.head_lanes / 2;
    frequency[lane] =
        std::pow(static_cast<double>(config.rope_theta), -2.0 * pair / config.head_dim());
  }
  for (std::uint32_t position = 0; position < config.context; ++position) {
    const auto rows = std::span(table).subspan(std::size_t{position} * 2 * mlen, 2 * mlen);
    for (std::uint32_t lane = 0; lane < mlen; ++lane) {
      if (lane % tiling.heads.head_lanes >= config.head_dim()) continue;
      rows[lane] = std::cos(position * frequency[lane]);
      rows[mlen + lane] = std::sin(position * frequency[lane]);
    }
  }
  return table;
}

// Subtracts from `rest` what `hbm` holds of it and returns that, as f32.
std::vector<float> split_off_term(std::vector<double>& rest, const HbmCodec& codec) {
  const DataType type = codec.hbm_type();
  const std::size_t n = rest.size();
  std::vector<float> term(rest.begin(), rest.end());
  std::vector<std::uint8_t> elements(n * type.width() / 8);
  std::vector<std::uint8_t> scales(type.is_mx() ? n / type.block : 0);
  codec.encode(term.data(), n, elements.data(), scales.data());
  codec.decode(elements.data(), scales.data(), 0, n, term.data());
  for (std::size_t i = 0; i < n; ++i) rest[i] -= static_cast<double>(term[i]);
  return term;
}

double largest(const std::vector<double>& values) {
  double most = 0;
  for (const double v : values) most = std::isnan(v) ? HUGE_VAL : std::max(most, std::abs(v));
  return most;
}

}  // namespace

Result<RopeTable> make_rope_table(const LlamaConfig& config, const LlamaTiling& tiling,
                                  DataType hbm, ElementType sram) {
  const double half_ulp = std::ldexp(1.0, -sram.mantissa - 2);  // of values from 1/2 to 1
  std::vector<double> rest = exact_table(config, tiling);
  std::vector<std::vector<float>> terms;
  const HbmCodec codec(hbm, kFp32);
  while (terms.size() < kMaxTerms && (terms.empty() || largest(rest) > half_ulp)) {
    terms.push_back(split_off_term(rest, codec));
  }
  if (largest(rest) > kUselessError) {
    return fail_with_hint(ErrorCode::Unsupported,
                          fmt::format("HBM_V_ACT_TYPE {} cannot hold the cosines and sines of "
                                      "rotary embedding",
                                      hbm.name()),
                          "choose a floating-point or MX type");
  }
  RopeTable table;
  table.terms = static_cast<std::uint32_t>(terms.size());
  Quantiser stream(hbm);
  const std::size_t rows = std::size_t{config.context} * 2;
  for (std::size_t row = 0; row < rows; ++row) {
    for (const auto& term : terms) {
      stream.append(std::span(term).subspan(row * tiling.mlen, tiling.mlen));
    }
  }
  table.tensor = std::move(stream).finish();
  return table;
}

}  // namespace plena
