#include "plena/compiler/compile.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "plena/compiler/kernels.h"
#include "plena/compiler/llama_weights.h"
#include "plena/compiler/memory_plan.h"
#include "plena/compiler/rope_table.h"
#include "plena/compiler/tiling.h"
#include "plena/numerics/float_format.h"

namespace plena {

namespace {

Status check_block(std::string_view key, DataType type, std::uint32_t mlen) {
  if (!type.is_mx() || mlen % type.block == 0) return {};
  return fail_with_hint(
      ErrorCode::Unsupported,
      fmt::format("{} {} has blocks of {}, which do not divide a row of {} elements", key,
                  type.name(), type.block, mlen),
      "choose a block that divides MLEN");
}

Status check_options(const CompileOptions& options) {
  const Settings& s = options.settings;
  if (auto checked = check(s); !checked) return checked;
  if (options.dialect.any_switch()) {
    return fail_with_hint(ErrorCode::Unsupported,
                          fmt::format("the compiler writes for the specification's machine, not "
                                      "for the dialect {}",
                                      options.dialect.name()),
                          "leave out --isa, or name extensions only");
  }
  if (s.vlen != s.mlen) {
    return fail_with_hint(
        ErrorCode::Unsupported,
        fmt::format("the compiler needs rows as wide as tiles, but VLEN is {} and MLEN {}", s.vlen,
                    s.mlen),
        fmt::format("set VLEN to {}", s.mlen));
  }
  if (s.hbm_v_kv_type != s.hbm_m_kv_type) {
    return fail_with_hint(
        ErrorCode::Unsupported,
        fmt::format("the KV cache is written as HBM_V_KV_TYPE ({}) and read as HBM_M_KV_TYPE ({})",
                    s.hbm_v_kv_type.name(), s.hbm_m_kv_type.name()),
        "give both the same type");
  }
  for (const auto& [key, type] : {std::pair{"HBM_M_WEIGHT_TYPE", s.hbm_m_weight_type},
                                  std::pair{"HBM_M_KV_TYPE", s.hbm_m_kv_type},
                                  std::pair{"HBM_V_ACT_TYPE", s.hbm_v_act_type}}) {
    if (auto divides = check_block(key, type, s.mlen); !divides) return divides;
  }
  return {};
}

// A power of two so large that exp of its negative is 0, and finite in all the formats it passes.
float lowest_score(const Settings& settings) {
  constexpr int kFarEnough = 40;
  int exponent = kFarEnough;
  for (const ElementType type : {settings.scalar_fp.element, settings.vector_sram_type.element}) {
    exponent = std::min(exponent, (1 << (type.exponent - 1)) - 1);
  }
  if (!settings.hbm_v_act_type.is_mx()) {
    exponent = std::min(exponent, element_emax(settings.hbm_v_act_type.element));
  }
  return -std::ldexp(1.0F, exponent);
}

// Zeros, the slot selectors, and the causal mask: mlen zeros followed by mlen times `lowest`.
QuantisedTensor make_constants(const LlamaTiling& tiling, DataType type, float lowest) {
  const std::size_t mlen = tiling.mlen;
  std::vector<float> rows((selector_rows(tiling) + 2) * mlen, 0.0F);
  for (std::size_t slot = 0; slot < tiling.heads.slots; ++slot) {
    const auto first =
        static_cast<std::ptrdiff_t>((1 + slot) * mlen + slot * tiling.heads.head_lanes);
    std::fill_n(rows.begin() + first, tiling.heads.head_lanes, 1.0F);
  }
  std::fill_n(rows.end() - static_cast<std::ptrdiff_t>(mlen), mlen, lowest);
  Quantiser stream(type);
  stream.append(rows);
  return std::move(stream).finish();
}

void add_segments(std::vector<HbmSegment>& segments, const std::string& name,
                  const HbmTensor& place, std::uint64_t scale_offset, QuantisedTensor tensor) {
  segments.push_back({name, place.base, std::move(tensor.elements)});
  if (tensor.scales.empty()) return;
  segments.push_back({name + ", scales", place.base + scale_offset, std::move(tensor.scales)});
}

std::vector<std::uint32_t> make_fp_mem(const LlamaModel& model, const MemoryPlan& plan,
                                       const Settings& settings, float lowest) {
  const ElementType type = settings.scalar_fp.element;
  std::vector<std::uint32_t> entries(plan.fp.used());
  entries[plan.norm_bias.first] =
      encode_fp(type, static_cast<float>(model.config.dim) * model.config.norm_epsilon);
  entries[plan.one.first] = encode_fp(type, 1.0F);
  entries[plan.lowest.first] = encode_fp(type, lowest);
  return entries;
}

Manifest make_manifest(const LlamaModel& model, const LlamaTiling& tiling, const MemoryPlan& plan,
                       std::uint32_t rope_rows, const CompileOptions& options) {
  const std::uint32_t mlen = tiling.mlen;
  const auto entry = [](const Block& block) { return static_cast<std::uint32_t>(block.first); };
  const auto tile = static_cast<std::uint32_t>(tiling.tile_elements());
  const std::uint32_t score_rows = tiling.heads.heads_per_tile() * options.settings.vlen;
  Manifest manifest;
  manifest.model = options.model_name;
  manifest.vocab = model.config.vocab;
  manifest.context = model.config.context;
  manifest.token_address = entry(plan.token);
  manifest.logits_address = plan.logits.first * options.settings.vlen;
  manifest.position_inputs = {
      {.name = "cache_row", .address = entry(plan.cache_row), .multiply = mlen},
      {.name = "rope_row", .address = entry(plan.rope_row), .multiply = rope_rows * mlen},
      {.name = "cache_span",
       .address = entry(plan.cache_span),
       .divide = mlen,
       .multiply = tile,
       .add = tile},
      {.name = "score_span",
       .address = entry(plan.score_span),
       .divide = mlen,
       .multiply = score_rows,
       .add = score_rows},
      {.name = "last_lane", .address = entry(plan.last_lane), .modulo = mlen},
  };
  return manifest;
}

void describe(Emitter& e, const LlamaModel& model, const MemoryPlan& plan,
              const CompileOptions& options) {
  const LlamaConfig& c = model.config;
  e.comment(
      fmt::format("{}: one token of a Llama with {} layers, dim {}, hidden {}, {} heads of "
                  "{}, {} KV heads,",
                  options.model_name.empty() ? "model" : options.model_name, c.layers, c.dim,
                  c.hidden_dim, c.heads, c.head_dim(), c.kv_heads));
  e.comment(fmt::format("vocabulary {}, context {}.", c.vocab, c.context));
  e.blank_line();
  const auto list = [&](std::string_view memory, std::string_view unit,
                        const BlockAllocator& blocks) {
    e.comment(fmt::format("{}, {} in use:", memory, unit));
    for (const Block& b : blocks.blocks()) {
      e.comment(fmt::format("  {:>10} + {:<9} {}", b.first, b.count, b.name));
    }
  };
  list("HBM", "bytes", plan.hbm);
  list("Matrix SRAM", "tiles", plan.mram);
  list("Vector SRAM", "rows", plan.vram);
  list("FP_MEM", "entries", plan.fp);
  list("INT_MEM", "entries", plan.integers);
  e.blank_line();
}

void emit_layer(const KernelContext& context) {
  const LlamaTiling& t = context.tiling;
  const MemoryPlan& plan = context.plan;
  Emitter& e = context.emitter;
  emit_rmsnorm(context);
  {
    const RegionScope region(e, "qkv");
    emit_product(context, plan.normed, t.dim_tiles, plan.qkv,
                 t.heads.query_tiles() + t.cache_tiles());
  }
  emit_rope(context);
  emit_cache_append(context);
  emit_attention(context);
  {
    const RegionScope region(e, "attention_output");
    emit_product(context, plan.attention, t.heads.query_tiles(), plan.residual, t.dim_tiles,
                 Destination::AddTo);
  }
  emit_rmsnorm(context);
  emit_swiglu(context);
  {
    const RegionScope region(e, "ffn_down");
    emit_product(context, plan.hidden, t.hidden_tiles, plan.residual, t.dim_tiles,
                 Destination::AddTo);
  }
}

Result<EmittedProgram> emit_program(const LlamaModel& model, const LlamaTiling& tiling,
                                    const MemoryPlan& plan, std::uint32_t rope_terms,
                                    const CompileOptions& options) {
  Emitter e;
  describe(e, model, plan, options);
  HeldGp weights(e, "weight stream");
  HeldGp cache(e, "cache of the layer");
  const KernelContext context{.emitter = e,
                              .settings = options.settings,
                              .tiling = tiling,
                              .plan = plan,
                              .rope_terms = rope_terms,
                              .weights = weights,
                              .cache = cache};
  e.set(weights, 0, "start of the weight stream");
  e.set(cache, 0, "start of the KV cache");
  emit_setup(context);
  emit_embedding(context);
  {
    Loop layers(e, model.config.layers, "layers");
    const RegionScope region(e, "layer");
    emit_layer(context);
    step(context, cache, tiling.cache_tiles() * plan.cache_stride, model.config.layers);
  }
  emit_rmsnorm(context);
  {
    const RegionScope region(e, "logits");
    emit_product(context, plan.normed, tiling.dim_tiles, plan.logits, tiling.vocab_tiles);
  }
  return std::move(e).finish();
}

}  // namespace

Result<Image> compile_llama(const LlamaModel& model, const CompileOptions& options) {
  if (auto checked = check_options(options); !checked) return tl::unexpected(checked.error());
  const Settings& settings = options.settings;
  auto tiling = tile_llama(model.config, settings.mlen);
  if (!tiling) return forward_error(tiling);
  auto rope = make_rope_table(model.config, *tiling, settings.hbm_v_act_type,
                              settings.vector_sram_type.element);
  if (!rope) return forward_error(rope);
  auto plan = plan_memory({.weight_tiles = weight_tiles(model.config, *tiling),
                           .rope_rows = rope->rows_per_position(),
                           .layers = model.config.layers,
                           .vocab = model.config.vocab,
                           .context = model.config.context},
                          *tiling, settings);
  if (!plan) return forward_error(plan);
  auto emitted = emit_program(model, *tiling, *plan, rope->terms, options);
  if (!emitted) return forward_error(emitted);

  const float lowest = lowest_score(settings);
  Image image;
  image.settings = settings;
  image.dialect = options.dialect;
  image.program = std::move(emitted->program);
  image.assembly = std::move(emitted->text);
  image.manifest = make_manifest(model, *tiling, *plan, rope->rows_per_position(), options);
  image.tokenizer = options.tokenizer;
  image.fp_mem = make_fp_mem(model, *plan, settings, lowest);
  image.int_mem.assign(plan->integers.used(), 0);
  add_segments(image.hbm, "weights", plan->weights, plan->scale_offset,
               pack_weights(model, *tiling, settings.hbm_m_weight_type, options.scales));
  add_segments(image.hbm, "embedding", plan->embedding, plan->scale_offset,
               pack_embedding(model, *tiling, settings.hbm_v_act_type, options.scales));
  add_segments(image.hbm, "rope table", plan->rope, plan->scale_offset, std::move(rope->tensor));
  add_segments(image.hbm, "constants", plan->constants, plan->scale_offset,
               make_constants(*tiling, settings.hbm_v_act_type, lowest));
  return image;
}

}  // namespace plena
