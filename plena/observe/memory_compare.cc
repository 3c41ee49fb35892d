#include "plena/observe/memory_compare.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <variant>

#include "plena/observe/memory_elements.h"

namespace plena {

namespace {

constexpr std::uint64_t kPiece = 1U << 16;  // elements compared at a time

// What the file says: numbers and, when it is raw, the bit patterns they come from.
struct Expected {
  std::vector<double> numbers;
  std::vector<std::uint32_t> bits;
};

using Source = std::variant<RawFile, NpyArray>;

Result<Source> read_source(const Machine& machine, const MemorySpec& spec) {
  if (spec.is_npy()) {
    auto array = read_npy(spec.file);
    if (!array) return forward_error(array);
    if (auto checked = check_array(machine, spec.memory, *array, spec.first, spec.file); !checked)
      return forward_error(checked);
    return std::move(*array);
  }
  auto file = RawFile::open(spec.file);
  if (!file) return forward_error(file);
  const std::uint64_t size = file->bytes().size();
  const std::size_t unit = machine.file_element_bytes(spec.memory);
  if (auto whole = check_whole(machine, spec.memory, size, spec.file); !whole)
    return forward_error(whole);
  if (auto fits = check_fits(machine, spec.memory, spec.first, size / unit, spec.file); !fits)
    return forward_error(fits);
  return std::move(*file);
}

std::uint64_t element_count(const Source& source, std::size_t unit) {
  if (const auto* array = std::get_if<NpyArray>(&source)) return array->size();
  return std::get<RawFile>(source).bytes().size() / unit;
}

Result<Source> open_source(const Machine& machine, const MemorySpec& spec) {
  auto source = read_source(machine, spec);
  if (source && element_count(*source, machine.file_element_bytes(spec.memory)) == 0)
    return fail(ErrorCode::Format, "{} holds no elements to compare", spec.file);
  return source;
}

Expected read_piece(const Source& source, const Machine& machine, MemoryKind memory,
                    std::uint64_t at, std::uint64_t count) {
  const auto format = float_format(machine, memory);
  Expected expected;
  if (const auto* array = std::get_if<NpyArray>(&source)) {
    expected.numbers = array_numbers(*array, at, count);
    if (!format) {  // negative integers stand for their two's complement
      for (double& number : expected.numbers) {
        const auto bits = bits_of_number(format, array->type, number);
        if (bits) number = *bits;
      }
    }
    return expected;
  }
  const std::size_t unit = machine.file_element_bytes(memory);
  expected.bits =
      element_bits(std::get<RawFile>(source).bytes().subspan(at * unit, count * unit), unit);
  expected.numbers.reserve(expected.bits.size());
  for (const std::uint32_t bits : expected.bits)
    expected.numbers.push_back(element_number(format, bits));
  return expected;
}

// 0 for equal numbers, infinite where exactly one is a NaN.
double difference(double got, double expected) {
  if (std::isnan(got) && std::isnan(expected)) return 0;
  if (got == expected) return 0;
  const double distance = std::abs(got - expected);
  return std::isnan(distance) ? std::numeric_limits<double>::infinity() : distance;
}

bool is_close(double distance, double expected, const Tolerance& tolerance) {
  if (distance == 0) return true;
  // An infinite expectation has no neighbourhood; NaN comparisons are false.
  return std::isfinite(distance) &&
         distance <= tolerance.absolute + tolerance.relative * std::abs(expected);
}

}  // namespace

Status check_comparable(const Machine& machine, const MemorySpec& spec) {
  // What a pipe holds can be read only once.
  std::error_code ignored;
  if (std::filesystem::exists(spec.file, ignored) &&
      !std::filesystem::is_regular_file(spec.file, ignored)) {
    return {};
  }
  auto source = open_source(machine, spec);
  if (!source) return forward_error(source);
  return {};
}

Result<Comparison> compare_memory(const Machine& machine, const MemorySpec& spec,
                                  const Tolerance& tolerance) {
  const auto source = open_source(machine, spec);
  if (!source) return tl::unexpected(source.error());
  const std::size_t unit = machine.file_element_bytes(spec.memory);
  const auto format = float_format(machine, spec.memory);

  Comparison comparison;
  comparison.elements = element_count(*source, unit);
  for (std::uint64_t at = 0; at < comparison.elements; at += kPiece) {
    const std::uint64_t count = std::min(kPiece, comparison.elements - at);
    const auto bytes = machine.read_elements(spec.memory, spec.first + at, count);
    if (!bytes) return tl::unexpected(bytes.error());
    const Expected expected = read_piece(*source, machine, spec.memory, at, count);
    const auto got_bits = element_bits(*bytes, unit);
    for (std::size_t i = 0; i < count; ++i) {
      const double got = element_number(format, got_bits[i]);
      const double distance = difference(got, expected.numbers[i]);
      const bool other_bits = tolerance.exact() && !expected.bits.empty() && !std::isnan(got) &&
                              got_bits[i] != expected.bits[i];
      if (!other_bits && is_close(distance, expected.numbers[i], tolerance)) continue;
      ++comparison.mismatches;
      if (comparison.worst && distance <= comparison.worst->difference) continue;
      comparison.worst =
          Mismatch{spec.first + at + i,
                   expected.bits.empty() ? fmt::format("{}", expected.numbers[i])
                                         : element_text(machine, spec.memory, expected.bits[i]),
                   element_text(machine, spec.memory, got_bits[i]), distance};
    }
  }
  return comparison;
}

std::string describe(const Comparison& comparison, const Machine& machine, MemoryKind memory) {
  if (comparison.mismatches == 0) return fmt::format("{} elements match", comparison.elements);
  const Mismatch& worst = *comparison.worst;
  const std::uint64_t row = row_length(machine, memory);
  const std::string place = row == 0 ? fmt::format("{}", worst.address)
                                     : fmt::format("{} (row {}, lane {})", worst.address,
                                                   worst.address / row, worst.address % row);
  return fmt::format("{} of {} elements differ; worst at {}: expected {}, got {}",
                     comparison.mismatches, comparison.elements, place, worst.expected, worst.got);
}

}  // namespace plena
