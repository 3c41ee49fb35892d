// Opening llama2.c checkpoints, version 0: seven int32, then f32 tensors up to the end of the file.
#include <array>
#include <cmath>
#include <cstring>
#include <string_view>
#include <utility>

#include "plena/model/llama.h"
#include "plena/model/rotary.h"

namespace plena {

namespace {

constexpr std::size_t kHeaderFields = 7;
constexpr std::size_t kHeaderBytes = kHeaderFields * sizeof(std::int32_t);

// Larger than any Llama, and small enough that no product of sizes below leaves 64 bits.
constexpr std::int64_t kMaxDim = 1 << 16;
constexpr std::int64_t kMaxHiddenDim = 1 << 20;
constexpr std::int64_t kMaxLayers = 1 << 10;
constexpr std::int64_t kMaxHeads = 1 << 12;
constexpr std::int64_t kMaxVocab = 1 << 24;
constexpr std::int64_t kMaxContext = 1 << 24;

tl::unexpected<Error> reject(const std::string& path, std::string_view reason,
                             std::string_view hint) {
  return fail_with_hint(ErrorCode::Format,
                        fmt::format("{} is not a llama2.c checkpoint: {}", path, reason),
                        std::string(hint));
}

// Other model files people have, by how they start.
std::string_view name_of_other_format(std::string_view file) {
  if (file.starts_with("GGUF")) return "a GGUF file";
  if (file.starts_with("24ka")) return "a llama2.c checkpoint of version 1 or 2";  // 'ak42', LE
  if (file.starts_with("PK\x03\x04")) return "a zip archive (a PyTorch checkpoint?)";
  if (file.substr(0, 10).ends_with("{\"")) return "a safetensors file";
  return {};
}

struct Checkpoint {
  LlamaConfig config;
  bool tied = true;  // the output matrix is the token embedding
};

struct Field {
  std::string_view name;
  std::int64_t value;
  std::int64_t max;
};

Result<Checkpoint> read_header(const std::string& path, std::span<const std::uint8_t> file) {
  std::array<std::int32_t, kHeaderFields> header{};
  std::memcpy(header.data(), file.data(), kHeaderBytes);
  const auto [dim, hidden_dim, layers, heads, kv_heads, signed_vocab, context] = header;
  const std::int64_t vocab = signed_vocab < 0 ? -std::int64_t{signed_vocab} : signed_vocab;

  for (const Field& field :
       {Field{"dim", dim, kMaxDim}, Field{"hidden_dim", hidden_dim, kMaxHiddenDim},
        Field{"n_layers", layers, kMaxLayers}, Field{"n_heads", heads, kMaxHeads},
        Field{"n_kv_heads", kv_heads, kMaxHeads}, Field{"vocab_size", vocab, kMaxVocab},
        Field{"seq_len", context, kMaxContext}}) {
    if (field.value >= 1 && field.value <= field.max) continue;
    return reject(path, fmt::format("{} is {}", field.name, field.value),
                  fmt::format("{} lies in 1 … {}", field.name, field.max));
  }
  if (dim % heads != 0 || dim / heads % 2 != 0) {
    return reject(path, fmt::format("{} heads do not divide dim {} evenly", heads, dim),
                  "a head has dim / n_heads elements, an even number");
  }
  if (heads % kv_heads != 0) {
    return reject(path, fmt::format("n_kv_heads is {} with n_heads {}", kv_heads, heads),
                  "n_kv_heads divides n_heads");
  }

  Checkpoint checkpoint;
  checkpoint.tied = signed_vocab > 0;
  checkpoint.config.dim = static_cast<std::uint32_t>(dim);
  checkpoint.config.hidden_dim = static_cast<std::uint32_t>(hidden_dim);
  checkpoint.config.layers = static_cast<std::uint32_t>(layers);
  checkpoint.config.heads = static_cast<std::uint32_t>(heads);
  checkpoint.config.kv_heads = static_cast<std::uint32_t>(kv_heads);
  checkpoint.config.vocab = static_cast<std::uint32_t>(vocab);
  checkpoint.config.context = static_cast<std::uint32_t>(context);
  return checkpoint;
}

// Elements of the two tables of RoPE angles that old checkpoints carry and nobody reads.
std::uint64_t rope_table_elements(const LlamaConfig& c) {
  return std::uint64_t{c.context} * c.head_dim();
}

std::uint64_t expected_bytes(const Checkpoint& checkpoint) {
  const LlamaConfig& c = checkpoint.config;
  const std::uint64_t dim = c.dim;
  const std::uint64_t attention = 2 * dim * dim + 2 * dim * c.kv_dim();
  const std::uint64_t feed_forward = 3 * dim * c.hidden_dim;
  const std::uint64_t layer = attention + feed_forward + 2 * dim;
  const std::uint64_t embedding = dim * c.vocab;
  const std::uint64_t elements =
      embedding * (checkpoint.tied ? 1 : 2) + c.layers * layer + dim + rope_table_elements(c);
  return kHeaderBytes + elements * sizeof(float);
}

// Hands out the tensors of a mapped checkpoint in file order.
class TensorCursor {
 public:
  explicit TensorCursor(std::span<const std::uint8_t> bytes) : next_(bytes.data()) {}

  std::span<const float> take(std::uint64_t elements) {
    const std::span<const float> tensor{reinterpret_cast<const float*>(next_), elements};
    next_ += tensor.size_bytes();
    return tensor;
  }

  // The same tensor of every layer lies together.
  void take_layers(std::vector<LlamaLayer>& layers, std::span<const float> LlamaLayer::* tensor,
                   std::uint64_t elements) {
    for (LlamaLayer& layer : layers) layer.*tensor = take(elements);
  }

 private:
  const std::uint8_t* next_;
};

void bind_tensors(LlamaModel& model, std::span<const std::uint8_t> tensors, bool tied) {
  const LlamaConfig& c = model.config;
  const std::uint64_t dim = c.dim;
  TensorCursor cursor(tensors);
  model.layers.resize(c.layers);
  model.token_embedding = cursor.take(dim * c.vocab);
  cursor.take_layers(model.layers, &LlamaLayer::attention_norm, dim);
  cursor.take_layers(model.layers, &LlamaLayer::wq, dim * dim);
  cursor.take_layers(model.layers, &LlamaLayer::wk, dim * c.kv_dim());
  cursor.take_layers(model.layers, &LlamaLayer::wv, dim * c.kv_dim());
  cursor.take_layers(model.layers, &LlamaLayer::wo, dim * dim);
  cursor.take_layers(model.layers, &LlamaLayer::ffn_norm, dim);
  cursor.take_layers(model.layers, &LlamaLayer::w1, dim * c.hidden_dim);
  cursor.take_layers(model.layers, &LlamaLayer::w2, dim * c.hidden_dim);
  cursor.take_layers(model.layers, &LlamaLayer::w3, dim * c.hidden_dim);
  model.final_norm = cursor.take(dim);
  cursor.take(rope_table_elements(c));
  model.output = tied ? model.token_embedding : cursor.take(dim * c.vocab);
}

}  // namespace

Result<LlamaModel> open_llama2c(const std::string& path) {
  auto file = MappedFile::open(path);
  if (!file) return forward_error(file);
  const auto bytes = file->bytes();

  if (const auto other = name_of_other_format(file->text()); !other.empty()) {
    return reject(path, fmt::format("it is {}", other), "a version 0 checkpoint is read here");
  }
  if (bytes.size() < kHeaderBytes) {
    return reject(path,
                  bytes.empty() ? "it is empty" : fmt::format("it has {} bytes", bytes.size()),
                  "a checkpoint starts with seven int32: dim, hidden_dim, n_layers, n_heads, "
                  "n_kv_heads, vocab_size, seq_len");
  }
  const auto checkpoint = read_header(path, bytes);
  if (!checkpoint) return tl::unexpected(checkpoint.error());
  if (const auto expected = expected_bytes(*checkpoint); expected != bytes.size()) {
    return reject(path, fmt::format("it has {} bytes", bytes.size()),
                  fmt::format("the sizes in its header ask for {} bytes; {}", expected,
                              bytes.size() < expected ? "is it truncated?" : "what follows?"));
  }

  LlamaModel model;
  model.config = checkpoint->config;
  model.storage = std::make_shared<const MappedFile>(*std::move(file));
  bind_tensors(model, model.storage->bytes().subspan(kHeaderBytes), checkpoint->tied);
  return model;
}

Model describe(const LlamaModel& llama) {
  const LlamaConfig& c = llama.config;
  const auto vector = [](std::span<const float> v) { return Tensor::f32(v, 1, v.size()); };
  const auto matrix = [](std::span<const float> v, std::uint64_t columns) {
    return Tensor::f32(v, v.size() / columns, columns);
  };

  Model model;
  model.architecture = "llama2.c";
  model.config.hidden = c.dim;
  model.config.heads = c.heads;
  model.config.kv_heads = c.kv_heads;
  model.config.head_dim = c.head_dim();
  model.config.ffn = c.hidden_dim;
  model.config.vocab = c.vocab;
  model.config.context = c.context;
  model.config.norm_epsilon = c.norm_epsilon;
  model.config.score_scale = 1 / std::sqrt(static_cast<float>(c.head_dim()));
  model.config.pairing = RotaryPairing::Neighbours;
  model.config.rotary = {plain_rotary(c.rope_theta, c.head_dim())};
  model.config.layers.resize(c.layers);

  model.embedding = matrix(llama.token_embedding, c.dim);
  for (const LlamaLayer& layer : llama.layers) {
    LayerWeights weights;
    weights.attention_norm.weight = vector(layer.attention_norm);
    weights.q.weight = matrix(layer.wq, c.dim);
    weights.k.weight = matrix(layer.wk, c.dim);
    weights.v.weight = matrix(layer.wv, c.dim);
    weights.o.weight = matrix(layer.wo, c.dim);
    weights.ffn_norm.weight = vector(layer.ffn_norm);
    weights.ffn.gate.weight = matrix(layer.w1, c.dim);
    weights.ffn.up.weight = matrix(layer.w3, c.dim);
    weights.ffn.down.weight = matrix(layer.w2, c.hidden_dim);
    model.layers.push_back(std::move(weights));
  }
  model.final_norm.weight = vector(llama.final_norm);
  model.output.weight = matrix(llama.output, c.dim);
  model.tied = llama.output.data() == llama.token_embedding.data();
  model.special.begin = 1;
  model.special.ends = {2};
  model.storage = {llama.storage};
  return model;
}

}  // namespace plena
