// Compiled images on the simulated machine against a plain f32 forward pass: random models of
// many shapes, and machines of many sizes.
#include "plena/compiler/compile.h"

#include <cmath>
#include <cstring>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plena/asm/assembler.h"
#include "plena/asm/formatter.h"
#include "plena/config/testing/typed_settings.h"
#include "plena/model/testing/reference_forward.h"
#include "plena/numerics/float_format.h"
#include "plena/sim/engine.h"

namespace plena {
namespace {

using ::testing::HasSubstr;

// A Llama with random weights that keep its activations near 1.
class RandomModel {
 public:
  explicit RandomModel(const LlamaConfig& config) {
    model_.config = config;
    const std::size_t dim = config.dim;
    const std::size_t kv = config.kv_dim();
    const std::size_t hidden = config.hidden_dim;
    model_.token_embedding = tensor(std::size_t{config.vocab} * dim, 1.0F);
    const float inner = 1.0F / std::sqrt(static_cast<float>(dim));
    for (std::uint32_t i = 0; i < config.layers; ++i) {
      LlamaLayer layer;
      layer.attention_norm = tensor(dim, 1.0F);
      layer.wq = tensor(dim * dim, 2 * inner);
      layer.wk = tensor(kv * dim, 2 * inner);
      layer.wv = tensor(kv * dim, inner);
      layer.wo = tensor(dim * dim, inner);
      layer.ffn_norm = tensor(dim, 1.0F);
      layer.w1 = tensor(hidden * dim, inner);
      layer.w2 = tensor(dim * hidden, 1.0F / std::sqrt(static_cast<float>(hidden)));
      layer.w3 = tensor(hidden * dim, inner);
      model_.layers.push_back(layer);
    }
    model_.final_norm = tensor(dim, 1.0F);
    model_.output = tensor(std::size_t{config.vocab} * dim, inner);
  }

  [[nodiscard]] const LlamaModel& model() const { return model_; }

 private:
  std::span<const float> tensor(std::size_t n, float deviation) {
    std::normal_distribution<float> distribution(0.0F, deviation);
    auto& values = storage_.emplace_back(std::make_unique<std::vector<float>>(n));
    for (float& v : *values) v = distribution(random_);
    return *values;
  }

  std::mt19937 random_{7};
  std::vector<std::unique_ptr<std::vector<float>>> storage_;
  LlamaModel model_;
};

// A machine that holds an image and decodes one token a step.
class Decoder {
 public:
  explicit Decoder(const Image& image)
      : image_(image), machine_(Machine::create(image.settings, image.dialect).value()) {
    EXPECT_TRUE(preload(image, machine_));
    program_ = prepare(image.program.words, image.settings, image.dialect).value();
  }

  std::vector<float> step(std::uint32_t token, std::uint32_t position) {
    const Manifest& manifest = image_.manifest;
    machine_.int_mem[manifest.token_address] = token;
    for (const PositionInput& input : manifest.position_inputs) {
      machine_.int_mem[input.address] = input.value(position);
    }
    return run_from(0);
  }

  // The logits after the last of `tokens`, the first of which is at `position`.
  std::vector<float> run_block(std::span<const std::uint32_t> tokens, std::uint32_t position) {
    const Manifest& manifest = image_.manifest;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      machine_.int_mem[manifest.token_address + i] = tokens[i];
    }
    for (const PositionInput& input : manifest.position_inputs) {
      machine_.int_mem[input.address] = input.value(position);
    }
    machine_.int_mem[manifest.block->last_token_address] =
        static_cast<std::uint32_t>(tokens.size() - 1);
    return run_from(manifest.block->entry);
  }

 private:
  std::vector<float> run_from(std::uint32_t entry) {
    machine_.pc = entry;
    const Stop stop = run(machine_, *program_);
    const auto& block = image_.manifest.block;
    const bool ended = stop.reason == StopReason::Halted ||
                       (block && stop.trap && stop.trap->pc + 1 == block->entry);
    EXPECT_TRUE(ended) << (stop.trap ? to_error(*stop.trap, image_.program, image_.dialect).render()
                                     : "");
    return logits();
  }

  [[nodiscard]] std::vector<float> logits() const {
    const ElementType type = machine_.vector_element();
    std::vector<float> out;
    for (std::size_t i = 0; i < image_.manifest.vocab; ++i) {
      const std::size_t at = (image_.manifest.logits_address + i) * storage_bytes(type);
      std::uint32_t bits = 0;
      std::memcpy(&bits, machine_.vram.data() + at, storage_bytes(type));
      out.push_back(decode_fp(type, bits));
    }
    return out;
  }

  const Image& image_;
  Machine machine_;
  std::shared_ptr<const PreparedProgram> program_;
};

Settings fp32_settings() {
  return testing::settings_of(testing::kPlainFp32);
}

Settings with_tile(Settings settings, std::uint32_t mlen, std::uint32_t hlen, std::uint32_t blen) {
  settings.mlen = settings.vlen = settings.hbm_m_prefetch_amount = mlen;
  settings.hlen = hlen;
  settings.blen = blen;
  return settings;
}

// The largest difference between a machine's logits and the f32 forward pass over a context, the
// cache holding what an earlier, longer sequence left there.
float worst_difference(const LlamaConfig& config, const Settings& settings) {
  const RandomModel random(config);
  const auto image = compile(describe(random.model()), {settings, Dialect(), "random", {}});
  EXPECT_TRUE(image) << (image ? "" : image.error().render());
  if (!image) return HUGE_VALF;
  Decoder machine(*image);
  testing::ReferenceForward reference(random.model());
  float worst = 0;
  for (const std::uint32_t length : {config.context, config.context / 2}) {
    for (std::uint32_t position = 0; position < length; ++position) {
      const std::uint32_t token = (position * 7 + length) % config.vocab;
      const auto logits = machine.step(token, position);
      const auto expected = reference.step(token, position);
      for (std::size_t i = 0; i < logits.size(); ++i) {
        const float difference = std::abs(logits[i] - expected[i]);
        worst = std::isnan(difference) ? HUGE_VALF : std::max(worst, difference);
      }
    }
  }
  return worst;
}

const LlamaConfig kSmall{.dim = 32,
                         .hidden_dim = 43,
                         .layers = 2,
                         .heads = 4,
                         .kv_heads = 2,
                         .vocab = 37,
                         .context = 20};
constexpr float kF32Tolerance = 2e-4F;  // logits of random models are of the order of 10

LlamaConfig heads_of(std::uint32_t dim, std::uint32_t heads, std::uint32_t kv_heads) {
  LlamaConfig config = kSmall;
  config.dim = dim;
  config.heads = heads;
  config.kv_heads = kv_heads;
  return config;
}

class Heads : public ::testing::TestWithParam<LlamaConfig> {};

TEST_P(Heads, OfEveryShapeGiveTheLogitsOfTheForwardPass) {
  EXPECT_LT(worst_difference(GetParam(), with_tile(fp32_settings(), 16, 8, 4)), kF32Tolerance);
}

INSTANTIATE_TEST_SUITE_P(Compile, Heads,
                         ::testing::Values(heads_of(32, 4, 2),    // narrower than a mask group
                                           heads_of(16, 1, 1),    // as wide as a tile
                                           heads_of(16, 8, 1),    // one KV head, heads of 2
                                           heads_of(96, 6, 2),    // a tile each, groups of 3
                                           heads_of(48, 12, 2),   // groups over two rows
                                           heads_of(40, 10, 5),   // odd numbers
                                           heads_of(24, 4, 2),    // head of 6: padded lanes
                                           heads_of(40, 4, 4),    // head of 10: padded to 16
                                           heads_of(80, 2, 1),    // head of 40: wider than a tile
                                           heads_of(96, 3, 3)));  // head of 32: two tiles wide

// The same for tokens in blocks, over three tiles of positions, twice over the same cache.
float worst_difference_in_blocks(LlamaConfig config, const Settings& settings) {
  config.context = 3 * settings.mlen - 2;
  const RandomModel random(config);
  const auto image = compile(describe(random.model()), {settings, Dialect(), "random", {}});
  EXPECT_TRUE(image) << (image ? "" : image.error().render());
  if (!image || !image->manifest.block) return HUGE_VALF;
  const std::uint32_t most = image->manifest.block->tokens;
  Decoder machine(*image);
  testing::ReferenceForward reference(random.model());
  float worst = 0;
  for (const std::uint32_t length : {config.context, config.context / 2}) {
    for (std::uint32_t first = 0; first < length; first += most) {
      std::vector<std::uint32_t> tokens;
      std::vector<float> expected;
      for (std::uint32_t i = first; i < std::min(first + most, length); ++i) {
        tokens.push_back((i * 7 + length) % config.vocab);
        const auto logits = reference.step(tokens.back(), i);
        expected.assign(logits.begin(), logits.end());
      }
      const auto logits = machine.run_block(tokens, first);
      for (std::size_t i = 0; i < logits.size(); ++i) {
        const float difference = std::abs(logits[i] - expected[i]);
        worst = std::isnan(difference) ? HUGE_VALF : std::max(worst, difference);
      }
    }
  }
  return worst;
}

TEST_P(Heads, InBlocksGiveTheLogitsOfTheForwardPass) {
  const Settings settings = with_tile(fp32_settings(), 16, 8, 4);
  EXPECT_LT(worst_difference_in_blocks(GetParam(), settings), kF32Tolerance);
}

// Heads at least as wide as BLEN, and narrower ones on lanes of their own; as wide as HLEN,
// narrower and wider.
TEST(Blocks, OnArraysOfEverySizeGiveTheLogitsOfTheForwardPass) {
  for (const Settings& settings :
       {with_tile(fp32_settings(), 8, 8, 2), with_tile(fp32_settings(), 32, 8, 8),
        with_tile(fp32_settings(), 32, 32, 16), with_tile(fp32_settings(), 16, 16, 16),
        with_tile(fp32_settings(), 32, 16, 4), with_tile(fp32_settings(), 16, 4, 1)}) {
    EXPECT_LT(worst_difference_in_blocks(kSmall, settings), kF32Tolerance)
        << "MLEN " << settings.mlen << ", HLEN " << settings.hlen << ", BLEN " << settings.blen;
  }
}

// Tiles of K and V one at a time, parts of the inputs at a time, fewer tokens than a tile has.
TEST(Blocks, InSmallMemoriesGiveTheLogitsOfTheForwardPass) {
  Settings one_slot = with_tile(fp32_settings(), 16, 8, 4);
  one_slot.matrix_sram_size = 4 * std::uint64_t{one_slot.mlen};
  Settings two_slots = one_slot;
  two_slots.matrix_sram_size = 6 * std::uint64_t{one_slot.mlen};
  Settings few_rows = one_slot;
  few_rows.vector_sram_size = 800;
  for (const Settings& settings : {one_slot, two_slots, few_rows}) {
    EXPECT_LT(worst_difference_in_blocks(kSmall, settings), kF32Tolerance);
  }
}

class Machines : public ::testing::TestWithParam<Settings> {};

TEST_P(Machines, OfEverySizeGiveTheLogitsOfTheForwardPass) {
  EXPECT_LT(worst_difference(kSmall, GetParam()), kF32Tolerance);
}

Settings with_amounts(std::uint32_t m_rows, std::uint32_t v_rows, std::uint32_t stored_rows) {
  Settings settings = with_tile(fp32_settings(), 16, 8, 4);
  settings.hbm_m_prefetch_amount = m_rows;
  settings.hbm_v_prefetch_amount = v_rows;
  settings.hbm_v_writeback_amount = stored_rows;
  return settings;
}

Settings with_matrix_sram(std::uint64_t rows) {
  Settings settings = with_tile(fp32_settings(), 16, 8, 4);
  settings.matrix_sram_size = rows;
  return settings;
}

INSTANTIATE_TEST_SUITE_P(Compile, Machines,
                         ::testing::Values(with_tile(fp32_settings(), 8, 8, 2),
                                           with_tile(fp32_settings(), 32, 8, 8),
                                           with_tile(fp32_settings(), 64, 16, 4),
                                           with_amounts(16, 1, 1), with_amounts(16, 3, 3),
                                           with_amounts(32, 8, 16), with_matrix_sram(32),
                                           with_matrix_sram(50)));

// Two, three and four slots of two heads, over three tiles of positions; the last layer loads the
// keys of a next one that is not there.
TEST(Slots, ThatOverlapGiveTheLogitsOfTheForwardPass) {
  struct Shape {
    LlamaConfig config;
    Settings settings;
  };
  const Settings narrow = with_tile(fp32_settings(), 32, 8, 4);
  const Settings wide = with_tile(fp32_settings(), 64, 16, 4);
  for (auto [config, settings] :
       {Shape{heads_of(32, 4, 2), narrow}, Shape{heads_of(64, 8, 4), narrow},
        Shape{heads_of(32, 8, 4), wide}, Shape{heads_of(96, 6, 3), wide},
        Shape{heads_of(64, 4, 2), wide}}) {
    config.context = 3 * settings.mlen - 1;
    const RandomModel random(config);
    const auto image =
        compile(describe(random.model()), {settings, Dialect(), "random", {}}).value();
    EXPECT_THAT(image.assembly, HasSubstr("slot by slot"));
    EXPECT_LT(worst_difference(config, settings), kF32Tolerance)
        << config.heads << " heads of a model as wide as " << config.dim;
  }
}

// 1e-4 of the forward pass needs f32; the narrow formats only have to stay near it.
TEST(Compile, RunsWithTheDefaultTypes) {
  Settings settings;
  settings.mlen = settings.vlen = settings.hbm_m_prefetch_amount = 16;
  settings.hlen = 8;
  const float worst = worst_difference(kSmall, settings);
  EXPECT_LT(worst, 3.0F);
  EXPECT_GT(worst, 0.0F);
}

std::string refusal(const LlamaConfig& config, const Settings& settings,
                    const Dialect& dialect = {}) {
  const RandomModel random(config);
  const auto image = compile(describe(random.model()), {settings, dialect, "random", {}});
  return image ? "" : image.error().render();
}

TEST(Compile, RefusesSettingsItCannotServe) {
  Settings wide_rows;
  wide_rows.vlen = 128;
  EXPECT_THAT(refusal(kSmall, wide_rows), HasSubstr("VLEN is 128 and MLEN 64"));
  Settings two_caches;
  two_caches.hbm_v_kv_type = DataType::plain(kBf16);
  EXPECT_THAT(refusal(kSmall, two_caches), HasSubstr("give both the same type"));
  Settings long_blocks;
  long_blocks.hbm_m_weight_type = DataType::mx(kE4M3, 128);
  EXPECT_THAT(refusal(kSmall, long_blocks), HasSubstr("HBM_M_WEIGHT_TYPE"));
  Settings contradiction;
  contradiction.blen = 5;
  EXPECT_THAT(refusal(kSmall, contradiction), HasSubstr("BLEN"));
  EXPECT_THAT(refusal(kSmall, Settings{}, Dialect::plena_rs()), HasSubstr("plena-rs"));
}

TEST(Compile, NamesRegionsAndListsTheMemoryMapInTheText) {
  const RandomModel random(kSmall);
  const auto image =
      compile(describe(random.model()), {Settings{}, Dialect(), "random", {}}).value();
  for (const char* expected :
       {"; random: one token of", "residual", ".region layer", ".region attention", ".endregion"}) {
    EXPECT_THAT(image.assembly, HasSubstr(expected));
  }
  EXPECT_EQ(image.program.lines.size(), image.program.words.size());
}

TEST(Compile, WritesTextThatAssemblesToTheWordsInCanonicalLayout) {
  for (const Settings& settings : {Settings{}, with_tile(fp32_settings(), 16, 8, 4)}) {
    const RandomModel random(kSmall);
    const auto image =
        compile(describe(random.model()), {settings, Dialect(), "random", {}}).value();

    const Assembly assembled = assemble(image.assembly, {"program.asm", Dialect(), {}});
    ASSERT_TRUE(assembled.ok()) << first_error(assembled).render();
    EXPECT_EQ(assembled.program.words, image.program.words);
    EXPECT_EQ(assembled.program.lines, image.program.lines);
    EXPECT_EQ(assembled.program.regions, image.program.regions);

    Formatter formatter("program.asm");
    std::string canonical;
    formatter.feed(image.assembly, canonical);
    ASSERT_TRUE(formatter.finish(canonical));
    EXPECT_EQ(canonical, image.assembly);
  }
}

// Loops, not copies: a deeper model with a longer context is the same program with other counts
// (a constant that outgrows its immediate takes a second word).
TEST(Compile, WritesAProgramWhoseSizeDoesNotGrowWithTheModel) {
  LlamaConfig small = kSmall;
  small.context = 200;  // so many that heads are laid out as for more
  LlamaConfig deep = small;
  deep.layers = 9;
  deep.context = 300;
  const auto words = [](const LlamaConfig& config) {
    const RandomModel random(config);
    const CompileOptions options{Settings{}, Dialect(), "random", {}};
    return compile(describe(random.model()), options)->program.words.size();
  };
  EXPECT_LE(words(deep), words(small) + 16);
}

}  // namespace
}  // namespace plena
