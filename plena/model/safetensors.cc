#include "plena/model/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <filesystem>
#include <limits>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "plena/base/files.h"
#include "plena/model/config_reader.h"

namespace plena {

namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::uint64_t kMostHeaderBytes = 100'000'000;  // the limit of the format's own library
constexpr std::size_t kMostDimensions = 8;

struct Dtype {
  std::string_view name;
  std::uint64_t bytes;
  std::optional<StoredType> type;
};

constexpr std::array<Dtype, 14> kDtypes{{{"F32", 4, StoredType::F32},
                                         {"F16", 2, StoredType::F16},
                                         {"BF16", 2, StoredType::BF16},
                                         {"F64", 8, {}},
                                         {"F8_E4M3", 1, {}},
                                         {"F8_E5M2", 1, {}},
                                         {"I64", 8, {}},
                                         {"U64", 8, {}},
                                         {"I32", 4, {}},
                                         {"U32", 4, {}},
                                         {"I16", 2, {}},
                                         {"I8", 1, {}},
                                         {"U8", 1, {}},
                                         {"BOOL", 1, {}}}};

// A place in the part of the file behind the header.
struct Extent {
  std::uint64_t begin;
  std::uint64_t end;
  friend auto operator<=>(const Extent&, const Extent&) = default;
};

std::optional<std::vector<std::uint64_t>> read_numbers(const json& list) {
  if (!list.is_array() || list.size() > kMostDimensions) return {};
  std::vector<std::uint64_t> numbers;
  for (const json& number : list) {
    if (!number.is_number_unsigned()) return {};
    numbers.push_back(number.get<std::uint64_t>());
  }
  return numbers;
}

// Bytes the elements of a shape take; nothing where that leaves 64 bits.
std::optional<std::uint64_t> bytes_of(std::span<const std::uint64_t> shape, std::uint64_t element) {
  std::uint64_t bytes = element;
  for (const std::uint64_t size : shape) {
    if (__builtin_mul_overflow(bytes, size, &bytes)) return {};
  }
  return bytes;
}

class HeaderReader {
 public:
  HeaderReader(const std::string& path, std::span<const std::uint8_t> elements, TensorTable& table)
      : path_(path), elements_(elements), table_(table) {}

  Status read(const json& header) {
    if (!header.is_object()) return reject("its header is no object");
    for (const auto& [name, description] : header.items()) {
      if (name == "__metadata__") continue;
      if (auto done = read_tensor(name, description); !done) return done;
    }
    std::sort(extents_.begin(), extents_.end());
    for (std::size_t i = 1; i < extents_.size(); ++i) {
      if (extents_[i].begin < extents_[i - 1].end) return reject("two tensors overlap");
    }
    return {};
  }

 private:
  Status read_tensor(const std::string& name, const json& description) {
    const auto member = [&](const char* key) -> const json& {
      static const json kNothing;
      const auto at = description.find(key);
      return at == description.end() ? kNothing : *at;
    };
    if (!description.is_object() || !member("dtype").is_string()) {
      return reject(fmt::format("{} has no dtype", name));
    }
    const auto dtype_name = member("dtype").get<std::string>();
    const auto* dtype = std::find_if(kDtypes.begin(), kDtypes.end(),
                                     [&](const Dtype& d) { return d.name == dtype_name; });
    if (dtype == kDtypes.end()) return reject(fmt::format("{} has dtype {}", name, dtype_name));
    const auto shape = read_numbers(member("shape"));
    const auto place = read_numbers(member("data_offsets"));
    if (!shape || !place || place->size() != 2) {
      return reject(fmt::format("{} lacks a shape or a begin and end", name));
    }
    const Extent extent{(*place)[0], (*place)[1]};
    if (extent.begin > extent.end || extent.end > elements_.size()) {
      return reject(fmt::format("{} reaches from byte {} to {} of {}", name, extent.begin,
                                extent.end, elements_.size()));
    }
    const auto bytes = bytes_of(*shape, dtype->bytes);
    if (!bytes || *bytes != extent.end - extent.begin) {
      return reject(fmt::format("{} has {} bytes, which are not what its shape asks for", name,
                                extent.end - extent.begin));
    }
    extents_.push_back(extent);
    const bool is_new =
        table_
            .try_emplace(name, StoredTensor{dtype_name, dtype->type, *shape,
                                            elements_.subspan(extent.begin, *bytes)})
            .second;
    return is_new ? Status{} : reject(fmt::format("{} is in two files", name));
  }

  [[nodiscard]] tl::unexpected<Error> reject(const std::string& reason) const {
    return fail(ErrorCode::Format, "{} is not a safetensors file: {}", path_, reason);
  }

  const std::string& path_;
  std::span<const std::uint8_t> elements_;
  TensorTable& table_;
  std::vector<Extent> extents_;
};

// The shards of an index, each once.
Result<std::set<std::string>> read_index(const std::string& path) {
  auto text = read_text(path);
  if (!text) return forward_error(text);
  auto index = parse_json(*text, path);
  if (!index) return forward_error(index);
  const ConfigReader reader(*index, path);
  std::set<std::string> shards;
  for (const auto& [tensor, file] : reader.object("weight_map").items()) {
    // A shard lies in the folder of its index, so that no model reads files from elsewhere.
    if (!file.is_string() ||
        fs::path(file.get<std::string>()).filename() != file.get<std::string>()) {
      return fail_with_hint(ErrorCode::Format,
                            fmt::format("{}: {} lies in no file of the folder", path, tensor),
                            "weight_map gives the name of a file beside the index");
    }
    shards.insert(file.get<std::string>());
  }
  if (shards.empty()) return fail(ErrorCode::Format, "{} names no files in weight_map", path);
  return shards;
}

}  // namespace

Status parse_safetensors(std::span<const std::uint8_t> file, const std::string& path,
                         TensorTable& table) {
  static_assert(std::endian::native == std::endian::little);
  std::uint64_t header_bytes = 0;
  if (file.size() >= kLengthBytes) std::memcpy(&header_bytes, file.data(), kLengthBytes);
  if (file.size() < kLengthBytes || header_bytes > file.size() - kLengthBytes ||
      header_bytes > kMostHeaderBytes) {
    return fail_with_hint(
        ErrorCode::Format,
        fmt::format("{} is not a safetensors file: it has {} bytes", path, file.size()),
        "it starts with the length of its header in 8 bytes; is it truncated?");
  }
  const auto text = file.subspan(kLengthBytes, header_bytes);
  auto header = parse_json({reinterpret_cast<const char*>(text.data()), text.size()}, path);
  if (!header) return forward_error(header);
  return HeaderReader(path, file.subspan(kLengthBytes + header_bytes), table).read(*header);
}

Result<SafetensorsFiles> open_safetensors(const std::string& folder) {
  const auto single = (fs::path(folder) / "model.safetensors").string();
  const auto index = (fs::path(folder) / "model.safetensors.index.json").string();
  std::set<std::string> names{"model.safetensors"};
  std::error_code ignored;
  if (!fs::exists(single, ignored)) {
    if (!fs::exists(index, ignored)) {
      return fail_with_hint(ErrorCode::Io, fmt::format("{} holds no weights", folder),
                            "model.safetensors or model.safetensors.index.json");
    }
    auto shards = read_index(index);
    if (!shards) return forward_error(shards);
    names = *std::move(shards);
  }
  SafetensorsFiles files;
  for (const std::string& name : names) {
    const auto path = (fs::path(folder) / name).string();
    auto mapped = MappedFile::open(path);
    if (!mapped) return forward_error(mapped);
    auto file = std::make_shared<const MappedFile>(*std::move(mapped));
    if (auto parsed = parse_safetensors(file->bytes(), path, files.table); !parsed) {
      return forward_error(parsed);
    }
    files.storage.push_back(std::move(file));
  }
  return files;
}

}  // namespace plena
