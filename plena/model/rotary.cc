#include "plena/model/rotary.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include <nlohmann/json.hpp>

namespace plena {

RotaryTable plain_rotary(double theta, std::uint32_t width) {
  RotaryTable table;
  for (std::uint32_t pair = 0; pair < width / 2; ++pair) {
    table.inverse_frequency.push_back(std::pow(theta, -2.0 * pair / width));
  }
  return table;
}

RotaryTable stretch_llama3(RotaryTable table, const Llama3Scaling& scaling) {
  for (double& frequency : table.inverse_frequency) {
    // Turns within the original context, as HF and Meta's code compare them with the two factors.
    const double turns = scaling.original_context * frequency / (2 * std::numbers::pi);
    const double kept = std::clamp(
        (turns - scaling.low_factor) / (scaling.high_factor - scaling.low_factor), 0.0, 1.0);
    frequency *= kept + (1 - kept) / scaling.factor;
  }
  return table;
}

RotaryTable stretch_yarn(double theta, std::uint32_t width, const YarnScaling& scaling) {
  // The pair that turns `turns` times within the original context.
  const auto pair_of = [&](double turns) {
    return width * std::log(scaling.original_context / (turns * 2 * std::numbers::pi)) /
           (2 * std::log(theta));
  };
  double low = pair_of(scaling.beta_fast);
  double high = pair_of(scaling.beta_slow);
  if (scaling.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, width - 1.0);
  if (high <= low) high = low + 0.001;  // a step instead of a ramp
  RotaryTable table = plain_rotary(theta, width);
  for (std::size_t pair = 0; pair < table.inverse_frequency.size(); ++pair) {
    const double ramp = std::clamp((static_cast<double>(pair) - low) / (high - low), 0.0, 1.0);
    table.inverse_frequency[pair] *= (1 - ramp) + ramp / scaling.factor;
  }
  table.attention_factor = scaling.attention_factor != 0 ? scaling.attention_factor
                           : scaling.factor > 1          ? 0.1 * std::log(scaling.factor) + 1
                                                         : 1;
  return table;
}

RotaryTable scaled_rotary(ConfigReader& config, const nlohmann::json& scaling, double theta,
                          std::uint32_t width, std::uint32_t context) {
  ConfigReader reader(scaling, config.name() + ": rope scaling");
  const std::string kind = reader.text("rope_type", reader.text("type", "default"));
  if (!(theta > 1)) {
    config.reject(ErrorCode::Format, fmt::format("{}: rope_theta is {}", config.name(), theta),
                  "rope_theta is a number above 1");
    return plain_rotary(2, width);
  }
  RotaryTable table = plain_rotary(theta, width);
  const auto factor = [&] {
    const double value = reader.number("factor");
    if (!(value >= 1)) {
      reader.reject(ErrorCode::Format, fmt::format("{}: factor is {}", reader.name(), value),
                    "factor is a number not below 1");
      return 1.0;
    }
    return value;
  };
  if (kind == "linear") {
    const double divisor = factor();
    for (double& frequency : table.inverse_frequency) frequency /= divisor;
  } else if (kind == "llama3") {
    table = stretch_llama3(std::move(table),
                           {.factor = factor(),
                            .low_factor = reader.number("low_freq_factor"),
                            .high_factor = reader.number("high_freq_factor"),
                            .original_context = reader.number("original_max_position_embeddings")});
  } else if (kind == "yarn") {
    table = stretch_yarn(
        theta, width,
        {.factor = factor(),
         .beta_fast = reader.number("beta_fast", 32),
         .beta_slow = reader.number("beta_slow", 1),
         .original_context = reader.number("original_max_position_embeddings", context),
         .attention_factor = reader.number("attention_factor", 0),
         .truncate = reader.flag("truncate", true)});
  } else if (kind != "default" && kind != "dynamic") {
    reader.reject(ErrorCode::Unsupported, fmt::format("{} of kind {}", reader.name(), kind),
                  "known kinds are default, linear, dynamic, llama3 and yarn");
  }
  if (auto read = reader.status(); !read) {
    config.reject(read.error().code, read.error().message, read.error().hint);
  }
  for (const double frequency : table.inverse_frequency) {
    if (!std::isfinite(frequency)) {
      config.reject(ErrorCode::Format, fmt::format("{}: no finite frequencies", reader.name()), "");
      break;
    }
  }
  return table;
}

}  // namespace plena
