#include "plena/base/npy.h"

#include <bit>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>

namespace plena {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kPreambleV1 = 10;  // magic, two bytes of version, u16 header length
constexpr std::size_t kPreambleV2 = 12;  // the same with a u32
constexpr std::size_t kMaxRank = 32;     // NumPy's own limit of old
constexpr std::string_view kExpected =
    "expected an array saved by numpy.save: little-endian f2 f4 f8, i1 … i8 or u1 … u8, C order";

struct Header {
  NpyType type;
  bool fortran_order = false;
  std::vector<std::uint64_t> shape;
};

// `<f4`, `|u1`, … A byte has no order, so that any mark will do for it.
std::optional<NpyType> parse_type(std::string_view descr) {
  if (descr.size() != 3) return std::nullopt;
  const char order = descr[0];
  const char kind = descr[1];
  const int bytes = descr[2] - '0';
  const bool known_kind = kind == 'f' || kind == 'i' || kind == 'u';
  const bool known_size = bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
  const bool known_order =
      order == '<' || order == '=' || (bytes == 1 && (order == '|' || order == '>'));
  if (!known_kind || !known_size || !known_order || (kind == 'f' && bytes == 1))
    return std::nullopt;
  return NpyType{static_cast<NpyType::Kind>(kind), static_cast<std::uint8_t>(bytes)};
}

// The header is a Python dict literal with the keys descr, fortran_order and shape, in any order.
// Each read consumes what it names, or returns false (or nothing) and leaves a reason.
class HeaderReader {
 public:
  explicit HeaderReader(std::string_view text) : text_(text) {}

  [[nodiscard]] const std::string& reason() const { return reason_; }

  bool read(Header& header) {
    constexpr auto kReason = "its header is not a dictionary of quoted keys";
    bool seen_type = false;
    bool seen_order = false;
    bool seen_shape = false;
    if (!take('{')) return refuse(kReason);
    while (!take('}')) {
      const auto key = read_string();
      if (!key || !take(':')) return refuse(kReason);
      bool* seen = *key == "descr"           ? &seen_type
                   : *key == "fortran_order" ? &seen_order
                   : *key == "shape"         ? &seen_shape
                                             : nullptr;
      if (seen == nullptr || *seen) return refuse(fmt::format("unexpected header key {:?}", *key));
      *seen = true;
      const bool ok = seen == &seen_type    ? read_type(header.type)
                      : seen == &seen_order ? read_bool(header.fortran_order)
                                            : read_shape(header.shape);
      if (!ok) return false;
      if (!take(',') && peek() != '}') return refuse(kReason);
    }
    if (!seen_type || !seen_order || !seen_shape) {
      return refuse("its header lacks descr, fortran_order or shape");
    }
    return at_end() || refuse("its header goes on after the dictionary");
  }

 private:
  bool refuse(std::string reason) {
    reason_ = std::move(reason);
    return false;
  }

  bool at_end() {
    while (!text_.empty() && std::isspace(static_cast<unsigned char>(text_.front())) != 0) {
      text_.remove_prefix(1);
    }
    return text_.empty();
  }

  char peek() { return at_end() ? '\0' : text_.front(); }

  bool take(char expected) {
    if (at_end() || text_.front() != expected) return false;
    text_.remove_prefix(1);
    return true;
  }

  bool take(std::string_view word) {
    if (at_end() || text_.substr(0, word.size()) != word) return false;
    text_.remove_prefix(word.size());
    return true;
  }

  std::optional<std::string_view> read_string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') return std::nullopt;
    const auto end = text_.find(quote, 1);
    if (end == std::string_view::npos) return std::nullopt;
    const auto value = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return value;
  }

  bool read_type(NpyType& type) {
    const auto descr = read_string();
    if (!descr) return refuse("its descr is not a plain type");
    const auto parsed = parse_type(*descr);
    if (!parsed) return refuse(fmt::format("elements of type {:?} are not supported", *descr));
    type = *parsed;
    return true;
  }

  bool read_bool(bool& value) {
    value = take("True");
    return value || take("False") || refuse("its fortran_order is neither True nor False");
  }

  bool read_shape(std::vector<std::uint64_t>& shape) {
    constexpr auto kReason = "its shape is not a tuple of at most 32 sizes";
    if (!take('(')) return refuse(kReason);
    while (!take(')')) {
      std::uint64_t extent = 0;
      if (at_end() || shape.size() == kMaxRank) return refuse(kReason);
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), extent);
      if (error != std::errc{}) return refuse(kReason);
      text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
      take('L');  // Python 2 wrote 3L
      shape.push_back(extent);
      if (!take(',') && peek() != ')') return refuse(kReason);
    }
    return true;
  }

  std::string_view text_;
  std::string reason_;
};

// Bytes of the elements, or nothing when that is more than 64 bits hold.
std::optional<std::uint64_t> byte_count(const Header& header) {
  std::uint64_t count = header.type.bytes;
  for (const std::uint64_t extent : header.shape) {
    if (__builtin_mul_overflow(count, extent, &count)) return std::nullopt;
  }
  return count;
}

std::uint64_t load_little_endian(const std::uint8_t* from, std::size_t bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, from, bytes);
  return value;
}

double decode_half(std::uint64_t bits) {
  const int exponent = static_cast<int>((bits >> 10) & 0x1F);
  const auto mantissa = static_cast<double>(bits & 0x3FF);
  double magnitude =
      std::ldexp(exponent == 0 ? mantissa : mantissa + 1024, exponent == 0 ? -24 : exponent - 25);
  if (exponent == 0x1F) magnitude = mantissa == 0 ? HUGE_VAL : std::nan("");
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

double decode_element(NpyType type, std::uint64_t bits) {
  switch (type.kind) {
    case NpyType::Kind::Unsigned:
      return static_cast<double>(bits);
    case NpyType::Kind::Signed: {
      const unsigned unused = 64U - 8U * type.bytes;
      return static_cast<double>(static_cast<std::int64_t>(bits << unused) >> unused);
    }
    case NpyType::Kind::Float:
      break;
  }
  if (type.bytes == 2) return decode_half(bits);
  if (type.bytes == 4) {
    return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  }
  return std::bit_cast<double>(bits);
}

}  // namespace

std::string NpyType::name() const {
  return fmt::format("{}{}", static_cast<char>(kind), bytes);
}

std::vector<double> NpyArray::to_f64() const {
  std::vector<double> elements;
  elements.reserve(size());
  for (std::size_t at = 0; at + type.bytes <= bytes.size(); at += type.bytes) {
    elements.push_back(decode_element(type, load_little_endian(bytes.data() + at, type.bytes)));
  }
  return elements;
}

Result<NpyArray> parse_npy(std::span<const std::uint8_t> file, std::string_view name) {
  const auto reject = [&](std::string_view reason) {
    return fail_with_hint(ErrorCode::Format,
                          fmt::format("{} is not an .npy file this reads: {}", name, reason),
                          std::string(kExpected));
  };
  if (file.size() < kPreambleV1 || std::memcmp(file.data(), kMagic.data(), kMagic.size()) != 0) {
    return reject("it does not start with \\x93NUMPY");
  }
  const unsigned version = file[6];
  if (version < 1 || version > 3) return reject(fmt::format("format version {}", version));
  const std::size_t preamble = version == 1 ? kPreambleV1 : kPreambleV2;
  if (file.size() < preamble) return reject("it ends inside its header");
  const std::uint64_t length = load_little_endian(file.data() + 8, preamble - 8);
  if (length > file.size() - preamble) return reject("it ends inside its header");

  HeaderReader reader(
      {reinterpret_cast<const char*>(file.data()) + preamble, static_cast<std::size_t>(length)});
  Header header;
  if (!reader.read(header)) return reject(reader.reason());
  if (header.fortran_order && header.shape.size() > 1) return reject("it is in Fortran order");

  const auto elements = file.subspan(preamble + static_cast<std::size_t>(length));
  const auto expected = byte_count(header);
  if (!expected || *expected != elements.size()) {
    return reject(fmt::format("its shape ({}) of {} needs {} bytes of elements, it holds {}",
                              fmt::join(header.shape, ", "), header.type.name(),
                              expected ? std::to_string(*expected) : "more than 2^64",
                              elements.size()));
  }
  return NpyArray{header.type, std::move(header.shape), {elements.begin(), elements.end()}};
}

Result<NpyArray> read_npy(const std::string& path) {
  auto file = MappedFile::open(path);
  if (!file) return forward_error(file);
  return parse_npy(file->bytes(), path);
}

Bytes npy_header(NpyType type, std::span<const std::uint64_t> shape) {
  std::string header = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}{}), }}",
                                   type.bytes == 1 ? '|' : '<', type.name(), fmt::join(shape, ", "),
                                   shape.size() == 1 ? "," : "");
  // Elements start at a multiple of 64, so that a mapped file is aligned.
  const std::size_t unpadded = kPreambleV1 + header.size() + 1;
  header.append((64 - unpadded % 64) % 64, ' ');
  header += '\n';

  std::string preamble(kMagic);
  preamble +=
      {'\x01', '\x00', static_cast<char>(header.size()), static_cast<char>(header.size() >> 8)};

  preamble += header;
  return {preamble.begin(), preamble.end()};
}

Bytes npy_file(NpyType type, std::span<const std::uint64_t> shape,
               std::span<const std::uint8_t> elements) {
  Bytes file = npy_header(type, shape);
  file.insert(file.end(), elements.begin(), elements.end());
  return file;
}

}  // namespace plena
