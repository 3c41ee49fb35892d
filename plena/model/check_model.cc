// Whether a model is one: sizes in range and in step with each other, tensors present and in shape.
#include <algorithm>
#include <cmath>
#include <string>

#include "plena/model/open_model.h"

namespace plena {

namespace {

tl::unexpected<Error> reject(std::string message) {
  return fail_with_hint(ErrorCode::Format, std::move(message),
                        "the model's configuration contradicts itself");
}

Status check_sizes(const Model& model) {
  const ModelConfig& c = model.config;
  const bool positive = c.hidden != 0 && c.heads != 0 && c.kv_heads != 0 && c.head_dim != 0 &&
                        c.vocab != 0 && c.context != 0 && !c.layers.empty();
  if (!positive) return reject("a size of the model is 0");
  if (c.heads % c.kv_heads != 0) {
    return reject(fmt::format("{} heads and {} key-value heads", c.heads, c.kv_heads));
  }
  if (!(c.norm_epsilon >= 0) || !(c.score_scale > 0) || !std::isfinite(c.score_scale) ||
      !(c.score_cap >= 0) || !(c.logit_cap >= 0)) {
    return reject("a norm's epsilon, a scale or a cap is out of range");
  }
  for (const RotaryTable& table : c.rotary) {
    if (table.inverse_frequency.empty() || table.inverse_frequency.size() * 2 > c.head_dim) {
      return reject(fmt::format("{} pairs of a head of {} elements rotate",
                                table.inverse_frequency.size(), c.head_dim));
    }
  }
  if (c.activation == Activation::ClampedSwiglu && (!c.gated || !(c.swiglu_limit > 0))) {
    return reject("a clamped SwiGLU without a gate or a limit");
  }
  const bool all_visible = std::all_of(c.layers.begin(), c.layers.end(),
                                       [](const LayerConfig& layer) { return layer.window == 0; });
  if (!c.causal && !all_visible) return reject("a window without a causal mask");
  if (c.layers.size() != model.layers.size()) {
    return reject(fmt::format("{} layers, {} with weights", c.layers.size(), model.layers.size()));
  }
  return {};
}

Status check_special_tokens(const Model& model) {
  const auto check = [&](std::uint32_t id) -> Status {
    if (id < model.config.vocab) return {};
    return reject(fmt::format("token {} of a vocabulary of {}", id, model.config.vocab));
  };
  for (const auto& id : {model.special.begin, model.special.mask}) {
    if (!id) continue;
    if (auto fits = check(*id); !fits) return fits;
  }
  for (const std::uint32_t id : model.special.ends) {
    if (auto fits = check(id); !fits) return fits;
  }
  return {};
}

// Compares shapes and keeps the first that is wrong.
class ShapeCheck {
 public:
  void required(const std::string& name, const Tensor& tensor, std::uint64_t rows,
                std::uint64_t columns) {
    if (tensor.rows() == rows && tensor.columns() == columns) return;
    if (!status_) return;
    status_ = reject(tensor ? fmt::format("{} is [{}, {}], not [{}, {}]", name, tensor.rows(),
                                          tensor.columns(), rows, columns)
                            : fmt::format("{} is missing", name));
  }

  void optional(const std::string& name, const Tensor& tensor, std::uint64_t size) {
    if (tensor) required(name, tensor, 1, size);
  }

  void linear(const std::string& name, const Linear& map, std::uint64_t out, std::uint64_t in) {
    required(name, map.weight, out, in);
    optional(name + " bias", map.bias, out);
  }

  void norm(const std::string& name, const Norm& norm, std::uint64_t size) {
    required(name, norm.weight, 1, size);
    optional(name + " bias", norm.bias, size);
  }

  void optional_norm(const std::string& name, const Norm& value, std::uint64_t size) {
    if (value) norm(name, value, size);
  }

  void feed_forward(const std::string& name, const FeedForwardWeights& ffn, const ModelConfig& c,
                    std::uint64_t width) {
    if (c.gated) linear(name + " gate", ffn.gate, width, c.hidden);
    linear(name + " up", ffn.up, width, c.hidden);
    linear(name + " down", ffn.down, c.hidden, width);
  }

  [[nodiscard]] Status status() const { return status_; }
  void keep(Status status) {
    if (status_) status_ = std::move(status);
  }

 private:
  Status status_;
};

void check_layer(const ModelConfig& c, std::size_t index, const LayerWeights& layer,
                 ShapeCheck& check) {
  const LayerConfig& kind = c.layers[index];
  const std::string name = fmt::format("layer {} ", index);
  if (!c.rotary.empty() && kind.rotary >= c.rotary.size()) {
    check.keep(reject(fmt::format("{}has rotary table {}", name, kind.rotary)));
  }
  check.norm(name + "attention norm", layer.attention_norm, c.hidden);
  check.linear(name + "q", layer.q, c.query_width(), c.hidden);
  check.linear(name + "k", layer.k, c.kv_width(), c.hidden);
  check.linear(name + "v", layer.v, c.kv_width(), c.hidden);
  check.linear(name + "o", layer.o, c.hidden, c.query_width());
  check.optional_norm(name + "q norm", layer.q_norm, c.head_dim);
  check.optional_norm(name + "k norm", layer.k_norm, c.head_dim);
  check.optional(name + "sinks", layer.sinks, c.heads);
  check.optional_norm(name + "post-attention norm", layer.post_attention_norm, c.hidden);
  check.norm(name + "ffn norm", layer.ffn_norm, c.hidden);
  check.optional_norm(name + "post-ffn norm", layer.post_ffn_norm, c.hidden);
  if (!kind.experts) {
    check.feed_forward(name + "ffn", layer.ffn, c, c.ffn);
    return;
  }
  check.linear(name + "router", layer.router, c.experts.count, c.hidden);
  if (layer.experts.size() != c.experts.count || c.experts.chosen < 1 ||
      c.experts.chosen > c.experts.count) {
    check.keep(reject(fmt::format("{}has {} experts, of {} the best {}", name, layer.experts.size(),
                                  c.experts.count, c.experts.chosen)));
  }
  for (const FeedForwardWeights& expert : layer.experts) {
    check.feed_forward(name + "expert", expert, c, c.experts.hidden);
  }
}

}  // namespace

Status check_model(const Model& model) {
  if (auto sized = check_sizes(model); !sized) return sized;
  if (auto special = check_special_tokens(model); !special) return special;
  const ModelConfig& c = model.config;
  ShapeCheck check;
  check.required("embedding", model.embedding, c.vocab, c.hidden);
  if (model.positions) check.required("positions", model.positions, c.context, c.hidden);
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    check_layer(c, i, model.layers[i], check);
  }
  check.norm("final norm", model.final_norm, c.hidden);
  check.linear("output", model.output, c.vocab, c.hidden);
  return check.status();
}

}  // namespace plena
