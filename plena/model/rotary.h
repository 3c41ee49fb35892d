// The inverse frequencies of rotary positions, plain and in the ways published models stretch them.
#pragma once

#include <cstdint>
#include <string_view>

#include "plena/model/config_reader.h"
#include "plena/model/model.h"

namespace plena {

/// theta^(-2i / width) for each pair i of the `width` elements that turn.
RotaryTable plain_rotary(double theta, std::uint32_t width);

/// Llama 3: frequencies whose wavelength exceeds original_context / low_factor positions are
/// divided by `factor`, those below original_context / high_factor stay, and those between are
/// blended.
struct Llama3Scaling {
  double factor = 1;
  double low_factor = 1;
  double high_factor = 4;
  double original_context = 8192;
};
RotaryTable stretch_llama3(RotaryTable table, const Llama3Scaling& scaling);

/// YaRN (Peng et al. 2023): frequencies that turn fewer than beta_slow times within the original
/// context are divided by `factor`, those that turn more than beta_fast times stay, and a ramp over
/// the pairs lies between, its ends rounded outwards with `truncate`. Cosine and sine grow by 0.1
/// ln(factor) + 1 unless attention_factor says otherwise.
struct YarnScaling {
  double factor = 1;
  double beta_fast = 32;
  double beta_slow = 1;
  double original_context = 4096;
  double attention_factor = 0;  // 0: from factor
  bool truncate = true;
};
RotaryTable stretch_yarn(double theta, std::uint32_t width, const YarnScaling& scaling);

/// The table that a config asks for with `theta` and the object `scaling` (rope_scaling, or the
/// newer rope_parameters): kinds default, linear, dynamic (which is plain within the context),
/// llama3 and yarn. Another kind is an error in `config`.
RotaryTable scaled_rotary(ConfigReader& config, const nlohmann::json& scaling, double theta,
                          std::uint32_t width, std::uint32_t context);

}  // namespace plena
