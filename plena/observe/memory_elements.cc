#include "plena/observe/memory_elements.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "plena/numerics/float_format.h"

namespace plena {

namespace {

constexpr double kExactIntegers = 9007199254740992.0;  // 2^53: below it f64 holds every integer
constexpr double kSmallestInt = -2147483648.0;
constexpr double kLargestInt = 4294967295.0;

std::string shape_text(const NpyArray& array) {
  return fmt::format("({})", fmt::join(array.shape, ", "));
}

Status check_type(MemoryKind memory, const NpyArray& array, const std::string& name) {
  const bool is_float = array.type.kind == NpyType::Kind::Float;
  const auto reject = [&](const char* takes, std::string hint) {
    return fail_with_hint(ErrorCode::Format,
                          fmt::format("{} holds {}, but {} takes {}", name, array.type.name(),
                                      memory_name(memory), takes),
                          std::move(hint));
  };
  if (memory == MemoryKind::IntMem && is_float)
    return reject("integers", "in NumPy: array.astype(numpy.uint32)");
  if (memory == MemoryKind::Hbm && array.type != NpyType::of<std::uint8_t>())
    return reject("bytes", "in NumPy: array.view(numpy.uint8), of what HBM shall hold");
  return {};
}

// An array made of rows of the SRAM is meant to fill rows.
Status check_rows(const Machine& machine, MemoryKind memory, const NpyArray& array,
                  std::uint64_t first, const std::string& name) {
  const std::uint64_t length = row_length(machine, memory);
  const bool made_of_rows = length != 0 && array.shape.size() >= 2 && array.shape.back() == length;
  if (!made_of_rows || first % length == 0) return {};
  return fail_with_hint(
      ErrorCode::Usage,
      fmt::format("{} of shape {} is rows of {}, but address {} is inside a row", name,
                  shape_text(array), memory_name(memory), first),
      fmt::format("an address that is a multiple of {}, or a one-dimensional array", length));
}

}  // namespace

std::optional<ElementType> float_format(const Machine& machine, MemoryKind memory) {
  switch (memory) {
    case MemoryKind::Vram:
      return machine.vector_element();
    case MemoryKind::Mram:
      return machine.matrix_element();
    case MemoryKind::FpMem:
      return machine.scalar_element();
    case MemoryKind::IntMem:
    case MemoryKind::Hbm:
      return std::nullopt;
  }
  return std::nullopt;
}

std::uint64_t row_length(const Machine& machine, MemoryKind memory) {
  if (memory == MemoryKind::Vram) return machine.settings.vlen;
  if (memory == MemoryKind::Mram) return machine.settings.mlen;
  return 0;
}

std::vector<std::uint32_t> element_bits(std::span<const std::uint8_t> bytes,
                                        std::size_t element_bytes) {
  std::vector<std::uint32_t> bits(bytes.size() / element_bytes);
  for (std::size_t i = 0; i < bits.size(); ++i)
    std::memcpy(&bits[i], bytes.data() + i * element_bytes, element_bytes);
  return bits;
}

double element_number(std::optional<ElementType> format, std::uint32_t bits) {
  return format ? static_cast<double>(decode_fp(*format, bits)) : static_cast<double>(bits);
}

std::string element_text(const Machine& machine, MemoryKind memory, std::uint32_t bits) {
  const std::size_t digits = 2 * machine.file_element_bytes(memory);
  const auto format = float_format(machine, memory);
  return format ? fmt::format("{} (0x{:0{}X})", decode_fp(*format, bits), bits, digits)
                : fmt::format("{} (0x{:0{}X})", bits, bits, digits);
}

Status check_array(const Machine& machine, MemoryKind memory, const NpyArray& array,
                   std::uint64_t first, const std::string& name) {
  if (auto typed = check_type(memory, array, name); !typed) return typed;
  if (auto rows = check_rows(machine, memory, array, first, name); !rows) return rows;
  return check_fits(machine, memory, first, array.size(), name);
}

std::vector<double> array_numbers(const NpyArray& array, std::uint64_t first, std::uint64_t count) {
  const auto begin = array.bytes.begin() + static_cast<std::ptrdiff_t>(first * array.type.bytes);
  const auto end = begin + static_cast<std::ptrdiff_t>(count * array.type.bytes);
  return NpyArray{array.type, {count}, Bytes(begin, end)}.to_f64();
}

std::optional<std::uint32_t> bits_of_number(std::optional<ElementType> format, NpyType from,
                                            double number) {
  if (format) {
    const bool is_integer = from.kind != NpyType::Kind::Float;
    if (is_integer && std::abs(number) > kExactIntegers) return std::nullopt;
    return encode_fp(*format, number);
  }
  if (!(number >= kSmallestInt && number <= kLargestInt)) return std::nullopt;
  return static_cast<std::uint32_t>(static_cast<std::int64_t>(number));
}

Status check_fits(const Machine& machine, MemoryKind memory, std::uint64_t first,
                  std::uint64_t count, const std::string& file) {
  const std::uint64_t size = machine.element_count(memory);
  if (first <= size && count <= size - first) return {};
  return fail(ErrorCode::Usage, "{}: {} {} from address {} do not fit into {}, which has {}", file,
              count, memory == MemoryKind::Hbm ? "bytes" : "elements", first, memory_name(memory),
              size);
}

Status check_whole(const Machine& machine, MemoryKind memory, std::uint64_t bytes,
                   const std::string& file) {
  const std::size_t unit = machine.file_element_bytes(memory);
  if (bytes % unit == 0) return {};
  return fail(ErrorCode::Format, "{}: {} bytes are not whole elements of {}, which take {}", file,
              bytes, memory_name(memory), unit);
}

Result<RawFile> RawFile::open(const std::string& path) {
  RawFile file;
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored)) {
    auto mapped = MappedFile::open(path);
    if (!mapped) return forward_error(mapped);
    file.mapped_ = std::move(*mapped);
  } else {
    auto read = read_file(path);
    if (!read) return forward_error(read);
    file.read_ = std::move(*read);
  }
  return file;
}

}  // namespace plena
