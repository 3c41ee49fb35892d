#include "plena/model/testing/gguf_writer.h"

namespace plena::testing {

namespace {

constexpr std::size_t kAlignment = 32;

// Value types of the format.
constexpr std::uint32_t kU32 = 4;
constexpr std::uint32_t kI32 = 5;
constexpr std::uint32_t kF32 = 6;
constexpr std::uint32_t kBool = 7;
constexpr std::uint32_t kString = 8;
constexpr std::uint32_t kArray = 9;

template <class T>
void put(Bytes& bytes, const T& value) {
  const auto* first = reinterpret_cast<const std::uint8_t*>(&value);
  bytes.insert(bytes.end(), first, first + sizeof(T));
}

void put_text(Bytes& bytes, std::string_view text) {
  put(bytes, std::uint64_t{text.size()});
  bytes.insert(bytes.end(), text.begin(), text.end());
}

void put_key(Bytes& bytes, std::string_view key, std::uint32_t type) {
  put_text(bytes, key);
  put(bytes, type);
}

void put_array_start(Bytes& bytes, std::string_view key, std::uint32_t type, std::size_t count) {
  put_key(bytes, key, kArray);
  put(bytes, type);
  put(bytes, std::uint64_t{count});
}

}  // namespace

void GgufWriter::u32(std::string_view key, std::uint32_t value) {
  put_key(metadata_, key, kU32);
  put(metadata_, value);
  ++keys_;
}

void GgufWriter::f32(std::string_view key, float value) {
  put_key(metadata_, key, kF32);
  put(metadata_, value);
  ++keys_;
}

void GgufWriter::boolean(std::string_view key, bool value) {
  put_key(metadata_, key, kBool);
  put(metadata_, static_cast<std::uint8_t>(value));
  ++keys_;
}

void GgufWriter::text(std::string_view key, std::string_view value) {
  put_key(metadata_, key, kString);
  put_text(metadata_, value);
  ++keys_;
}

void GgufWriter::texts(std::string_view key, std::span<const std::string> values) {
  put_array_start(metadata_, key, kString, values.size());
  for (const std::string& value : values) put_text(metadata_, value);
  ++keys_;
}

void GgufWriter::i32s(std::string_view key, std::span<const std::int32_t> values) {
  put_array_start(metadata_, key, kI32, values.size());
  for (const std::int32_t value : values) put(metadata_, value);
  ++keys_;
}

void GgufWriter::f32s(std::string_view key, std::span<const float> values) {
  put_array_start(metadata_, key, kF32, values.size());
  for (const float value : values) put(metadata_, value);
  ++keys_;
}

void GgufWriter::tensor(std::string_view name, std::vector<std::uint64_t> shape,
                        std::span<const float> values) {
  put_text(tensors_, name);
  put(tensors_, static_cast<std::uint32_t>(shape.size()));
  for (auto size = shape.rbegin(); size != shape.rend(); ++size) put(tensors_, *size);
  put(tensors_, std::uint32_t{0});
  put(tensors_, std::uint64_t{elements_.size()});
  for (const float value : values) put(elements_, value);
  elements_.resize((elements_.size() + kAlignment - 1) / kAlignment * kAlignment);
  ++count_;
}

Bytes GgufWriter::file() const {
  Bytes bytes{'G', 'G', 'U', 'F', 3, 0, 0, 0};
  put(bytes, count_);
  put(bytes, keys_);
  bytes.insert(bytes.end(), metadata_.begin(), metadata_.end());
  bytes.insert(bytes.end(), tensors_.begin(), tensors_.end());
  bytes.resize((bytes.size() + kAlignment - 1) / kAlignment * kAlignment);
  bytes.insert(bytes.end(), elements_.begin(), elements_.end());
  return bytes;
}

}  // namespace plena::testing
