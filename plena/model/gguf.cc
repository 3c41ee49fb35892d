#include "plena/model/gguf.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace plena {

namespace {

using nlohmann::json;

constexpr std::string_view kMagic = "GGUF";
constexpr std::uint32_t kVersion = 3;
constexpr std::uint64_t kMostElements = std::uint64_t{1} << 24;  // of a metadata array
constexpr std::uint32_t kMostGgufDimensions = 4;
constexpr std::uint64_t kDefaultAlignment = 32;

// Numbers of the file format.
enum class ValueType : std::uint32_t {
  U8,
  I8,
  U16,
  I16,
  U32,
  I32,
  F32,
  Bool,
  String,
  Array,
  U64,
  I64,
  F64
};

std::optional<StoredType> stored_type(std::uint32_t ggml_type) {
  switch (ggml_type) {
    case 0:
      return StoredType::F32;
    case 1:
      return StoredType::F16;
    case 2:
      return StoredType::Q4_0;
    case 3:
      return StoredType::Q4_1;
    case 6:
      return StoredType::Q5_0;
    case 7:
      return StoredType::Q5_1;
    case 8:
      return StoredType::Q8_0;
    case 10:
      return StoredType::Q2_K;
    case 11:
      return StoredType::Q3_K;
    case 12:
      return StoredType::Q4_K;
    case 13:
      return StoredType::Q5_K;
    case 14:
      return StoredType::Q6_K;
    case 30:
      return StoredType::BF16;
    case 39:
      return StoredType::Mxfp4Block;
    default:
      return {};
  }
}

class Reader {
 public:
  Reader(std::span<const std::uint8_t> file, const std::string& path) : file_(file), path_(path) {}

  Result<Gguf> read() {
    at_ = kMagic.size();
    const auto version = take<std::uint32_t>();
    if (ok() && version != kVersion) {
      return fail_with_hint(ErrorCode::Unsupported,
                            fmt::format("{} is GGUF version {}", path_, version),
                            "version 3, little-endian, is read here; convert it anew");
    }
    const auto tensors = take<std::uint64_t>();
    const auto values = take<std::uint64_t>();
    Gguf gguf;
    gguf.metadata = json::object();
    for (std::uint64_t i = 0; i < values && ok(); ++i) read_value(gguf.metadata);
    for (std::uint64_t i = 0; i < tensors && ok(); ++i) read_tensor();
    if (ok()) place_tensors(gguf);
    if (!ok()) return fail(ErrorCode::Format, "{} is no valid GGUF file: {}", path_, reason_);
    return gguf;
  }

 private:
  struct TensorEntry {
    std::string name;
    std::vector<std::uint64_t> shape;
    std::uint32_t type = 0;
    std::uint64_t offset = 0;  // from the start of the tensors
  };

  [[nodiscard]] bool ok() const { return reason_.empty(); }
  void reject(std::string reason) {
    if (ok()) reason_ = std::move(reason);
  }

  // Whether `bytes` more are there; a size that leaves the file is the most common damage.
  bool has(std::uint64_t bytes) {
    if (ok() && bytes > file_.size() - at_) reject(fmt::format("it ends at byte {}", file_.size()));
    return ok();
  }

  template <class T>
  T take() {
    T value{};
    if (!has(sizeof(T))) return value;
    std::memcpy(&value, file_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }

  std::string take_string() {
    const auto length = take<std::uint64_t>();
    if (!has(length)) return {};
    std::string text(reinterpret_cast<const char*>(file_.data() + at_), length);
    at_ += length;
    return text;
  }

  json take_value(ValueType type) {
    switch (type) {
      case ValueType::U8:
        return take<std::uint8_t>();
      case ValueType::I8:
        return take<std::int8_t>();
      case ValueType::U16:
        return take<std::uint16_t>();
      case ValueType::I16:
        return take<std::int16_t>();
      case ValueType::U32:
        return take<std::uint32_t>();
      case ValueType::I32:
        return take<std::int32_t>();
      case ValueType::F32:
        return take<float>();
      case ValueType::Bool:
        return take<std::uint8_t>() != 0;
      case ValueType::String:
        return take_string();
      case ValueType::Array:
        return take_array();
      case ValueType::U64:
        return take<std::uint64_t>();
      case ValueType::I64:
        return take<std::int64_t>();
      case ValueType::F64:
        return take<double>();
    }
    reject(fmt::format("a value has type {}", static_cast<std::uint32_t>(type)));
    return {};
  }

  json take_array() {
    const auto type = ValueType{take<std::uint32_t>()};
    const auto count = take<std::uint64_t>();
    if (type == ValueType::Array) reject("an array holds arrays");
    if (count > kMostElements) reject(fmt::format("an array has {} elements", count));
    json array = json::array();
    for (std::uint64_t i = 0; i < count && ok(); ++i) array.push_back(take_value(type));
    return array;
  }

  void read_value(json& metadata) {
    std::string key = take_string();
    const auto type = ValueType{take<std::uint32_t>()};
    json value = take_value(type);
    if (metadata.contains(key)) reject("a key is there twice");
    if (ok()) metadata[std::move(key)] = std::move(value);
  }

  void read_tensor() {
    TensorEntry entry;
    entry.name = take_string();
    const auto dimensions = take<std::uint32_t>();
    if (dimensions < 1 || dimensions > kMostGgufDimensions) {
      return reject(fmt::format("a tensor has {} dimensions", dimensions));
    }
    for (std::uint32_t i = 0; i < dimensions; ++i) entry.shape.push_back(take<std::uint64_t>());
    std::reverse(entry.shape.begin(), entry.shape.end());
    entry.type = take<std::uint32_t>();
    entry.offset = take<std::uint64_t>();
    if (ok()) entries_.push_back(std::move(entry));
  }

  void place_tensors(Gguf& gguf) {
    std::uint64_t alignment = kDefaultAlignment;
    if (const auto given = gguf.metadata.find("general.alignment"); given != gguf.metadata.end()) {
      alignment = given->is_number_unsigned() ? given->get<std::uint64_t>() : 0;
      if (!std::has_single_bit(alignment) || alignment > (1U << 20)) {
        return reject("general.alignment is no power of two");
      }
    }
    const std::uint64_t start = (at_ + alignment - 1) & ~(alignment - 1);
    if (start > file_.size()) {
      if (entries_.empty()) return;
      return reject(fmt::format("it ends at byte {}, before its tensors", file_.size()));
    }
    std::vector<std::pair<std::uint64_t, std::uint64_t>> extents;  // begin, end
    for (TensorEntry& entry : entries_) {
      const auto type = stored_type(entry.type);
      const std::uint64_t bytes = type ? bytes_of(entry, *type) : 0;
      const std::uint64_t available = file_.size() - start;
      if (!ok()) return;
      if (entry.offset > available || bytes > available - entry.offset) {
        return reject(fmt::format("{} lies beyond its end; is it truncated?", entry.name));
      }
      extents.emplace_back(entry.offset, entry.offset + bytes);
      StoredTensor stored{fmt::format("GGML type {}", entry.type), type, std::move(entry.shape),
                          file_.subspan(start + entry.offset, bytes)};
      if (!gguf.tensors.try_emplace(std::move(entry.name), std::move(stored)).second) {
        return reject("a tensor is there twice");
      }
    }
    std::sort(extents.begin(), extents.end());
    for (std::size_t i = 1; i < extents.size(); ++i) {
      if (extents[i].first < extents[i - 1].second) return reject("two tensors overlap");
    }
  }

  std::uint64_t bytes_of(const TensorEntry& entry, StoredType type) {
    const std::uint64_t elements = block_elements(type);
    std::uint64_t bytes = block_bytes(type);
    bool overflows = false;
    for (std::size_t i = 0; i + 1 < entry.shape.size(); ++i) {
      overflows |= __builtin_mul_overflow(bytes, entry.shape[i], &bytes);
    }
    overflows |= __builtin_mul_overflow(bytes, entry.shape.back() / elements, &bytes);
    if (overflows || entry.shape.back() % elements != 0) {
      reject(fmt::format("the shape of {} is no number of {} blocks", entry.name, name_of(type)));
    }
    return bytes;
  }

  std::span<const std::uint8_t> file_;
  const std::string& path_;
  std::uint64_t at_ = 0;
  std::vector<TensorEntry> entries_;
  std::string reason_;  // empty: all is well so far
};

}  // namespace

bool is_gguf(std::span<const std::uint8_t> file) {
  return file.size() >= kMagic.size() && std::equal(kMagic.begin(), kMagic.end(), file.begin());
}

Result<Gguf> parse_gguf(std::span<const std::uint8_t> file, const std::string& path) {
  static_assert(std::endian::native == std::endian::little);
  if (!is_gguf(file)) return fail(ErrorCode::Format, "{} is no GGUF file", path);
  return Reader(file, path).read();
}

}  // namespace plena
