#include "plena/model/tensor.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "plena/model/block_formats.h"

namespace plena {

namespace {

struct Format {
  std::string_view name;
  std::uint32_t elements;
  std::uint32_t bytes;
};

constexpr std::size_t kFormats = static_cast<std::size_t>(StoredType::Normal) + 1;
constexpr std::uint32_t kMostBlockElements = 256;

// By StoredType; the sizes are those of ggml's block structures.
constexpr std::array<Format, kFormats> kFormat{{
    {"F32", 1, 4},
    {"F16", 1, 2},
    {"BF16", 1, 2},
    {"Q4_0", 32, 18},
    {"Q4_1", 32, 20},
    {"Q5_0", 32, 22},
    {"Q5_1", 32, 24},
    {"Q8_0", 32, 34},
    {"MXFP4", 32, 17},
    {"Q2_K", 256, 84},
    {"Q3_K", 256, 110},
    {"Q4_K", 256, 144},
    {"Q5_K", 256, 176},
    {"Q6_K", 256, 210},
    {"MXFP4, scales apart", 32, 16},
    {"random", 1, 0},
}};

const Format& format_of(StoredType type) {
  return kFormat[static_cast<std::size_t>(type)];
}

std::uint16_t read_u16(const std::uint8_t* bytes) {
  return static_cast<std::uint16_t>(bytes[0] | bytes[1] << 8);
}

// Elements 2 * pair and 2 * pair + 1 of a drawn tensor, times twice their deviation: sums of four
// random bytes, which are close enough to normal for weights without a meaning and take a few
// operations (the generator is SplitMix64, whose state is a counter).
struct DrawnPair {
  std::int32_t first;
  std::int32_t second;
};
constexpr float kDrawnDeviation = 295.6F;  // 2 * sqrt(4 * (256^2 - 1) / 12)

DrawnPair draw(std::uint64_t seed, std::uint64_t pair) {
  std::uint64_t z = seed + (pair + 1) * 0x9E3779B97F4A7C15U;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9U;
  z = (z ^ z >> 27) * 0x94D049BB133111EBU;
  z ^= z >> 31;
  constexpr std::uint64_t kBytes = 0x00FF00FF00FF00FFU;
  constexpr std::uint64_t kHalves = 0x0000FFFF0000FFFFU;
  z = (z & kBytes) + (z >> 8 & kBytes);
  z = (z & kHalves) + (z >> 16 & kHalves);
  constexpr std::int32_t kTwiceMean = 4 * 0xFF;
  return {2 * static_cast<std::int32_t>(z & 0xFFFF) - kTwiceMean,
          2 * static_cast<std::int32_t>(z >> 32) - kTwiceMean};
}

void draw_run(std::uint64_t seed, float deviation, std::uint64_t first, std::span<float> out) {
  const float scale = deviation / kDrawnDeviation;
  std::size_t i = 0;
  if (first % 2 == 1 && !out.empty()) {
    out[i++] = scale * static_cast<float>(draw(seed, first / 2).second);
  }
  for (; i + 1 < out.size(); i += 2) {
    const DrawnPair pair = draw(seed, (first + i) / 2);
    out[i] = scale * static_cast<float>(pair.first);
    out[i + 1] = scale * static_cast<float>(pair.second);
  }
  if (i < out.size()) out[i] = scale * static_cast<float>(draw(seed, (first + i) / 2).first);
}

}  // namespace

std::string_view name_of(StoredType type) {
  return format_of(type).name;
}

std::uint32_t block_elements(StoredType type) {
  return format_of(type).elements;
}

std::uint32_t block_bytes(StoredType type) {
  return format_of(type).bytes;
}

Tensor Tensor::stored(StoredType type, std::span<const std::uint8_t> bytes, std::uint64_t rows,
                      std::uint64_t columns) {
  Tensor tensor;
  tensor.type_ = type;
  tensor.bytes_ = bytes.data();
  tensor.rows_ = rows;
  tensor.columns_ = columns;
  tensor.row_stride_ = columns;
  return tensor;
}

Tensor Tensor::f32(std::span<const float> elements, std::uint64_t rows, std::uint64_t columns) {
  return stored(StoredType::F32,
                {reinterpret_cast<const std::uint8_t*>(elements.data()), elements.size_bytes()},
                rows, columns);
}

Tensor Tensor::mxfp4(std::span<const std::uint8_t> blocks, std::span<const std::uint8_t> scales,
                     std::uint64_t rows, std::uint64_t columns) {
  Tensor tensor = stored(StoredType::Mxfp4, blocks, rows, columns);
  tensor.scales_ = scales.data();
  return tensor;
}

Tensor Tensor::normal(std::uint64_t seed, float deviation, std::uint64_t rows,
                      std::uint64_t columns) {
  Tensor tensor = stored(StoredType::Normal, {}, rows, columns);
  tensor.seed_ = seed;
  tensor.deviation_ = deviation;
  return tensor;
}

Tensor Tensor::slice_rows(std::uint64_t first, std::uint64_t count) const {
  Tensor slice = *this;
  slice.origin_ += first * row_stride_;
  slice.rows_ = count;
  return slice;
}

Tensor Tensor::every_row(std::uint64_t first, std::uint64_t step) const {
  Tensor rows = *this;
  rows.origin_ += first * row_stride_;
  rows.row_stride_ = row_stride_ * step;
  rows.rows_ = (rows_ - first + step - 1) / step;
  return rows;
}

Tensor Tensor::transposed() const {
  Tensor turned = *this;
  std::swap(turned.rows_, turned.columns_);
  std::swap(turned.row_stride_, turned.column_stride_);
  return turned;
}

Tensor Tensor::plus(float addend) const {
  Tensor sum = *this;
  sum.addend_ += addend;
  return sum;
}

void Tensor::read(std::uint64_t row, std::uint64_t first_column, std::span<float> out) const {
  gather(origin_ + row * row_stride_ + first_column * column_stride_, column_stride_, out);
}

void Tensor::read_rows(std::uint64_t first_row, std::span<float> out) const {
  const std::uint64_t count = columns_ == 0 ? 0 : out.size() / columns_;
  if (column_stride_ <= row_stride_) {
    for (std::uint64_t i = 0; i < count; ++i) {
      read_row(first_row + i, out.subspan(i * columns_, columns_));
    }
    return;
  }
  std::vector<float> column(count);
  for (std::uint64_t c = 0; c < columns_; ++c) {
    gather(origin_ + first_row * row_stride_ + c * column_stride_, row_stride_, column);
    for (std::uint64_t i = 0; i < count; ++i) out[i * columns_ + c] = column[i];
  }
}

std::vector<float> Tensor::values() const {
  std::vector<float> all(size());
  read_rows(0, all);
  return all;
}

void Tensor::gather(std::uint64_t first, std::uint64_t stride, std::span<float> out) const {
  if (stride == 1) {
    decode(first, out);
  } else {
    for (std::size_t i = 0; i < out.size(); ++i) decode(first + i * stride, out.subspan(i, 1));
  }
  if (addend_ != 0) {
    for (float& value : out) value += addend_;
  }
}

void Tensor::decode(std::uint64_t first, std::span<float> out) const {
  switch (type_) {
    case StoredType::F32:
      if (!out.empty()) std::memcpy(out.data(), bytes_ + first * sizeof(float), out.size_bytes());
      return;
    case StoredType::F16:
      for (std::size_t i = 0; i < out.size(); ++i) {
        out[i] = half_to_float(read_u16(bytes_ + 2 * (first + i)));
      }
      return;
    case StoredType::BF16:
      for (std::size_t i = 0; i < out.size(); ++i) {
        out[i] = std::bit_cast<float>(std::uint32_t{read_u16(bytes_ + 2 * (first + i))} << 16);
      }
      return;
    case StoredType::Normal:
      draw_run(seed_, deviation_, first, out);
      return;
    default:
      decode_blocks(first, out);
  }
}

void Tensor::decode_blocks(std::uint64_t first, std::span<float> out) const {
  const std::uint64_t elements = block_elements(type_);
  const std::uint64_t bytes = block_bytes(type_);
  std::array<float, kMostBlockElements> block;
  while (!out.empty()) {
    const std::uint64_t index = first / elements;
    const std::uint64_t skipped = first % elements;
    if (type_ == StoredType::Mxfp4) {
      decode_mxfp4_block(bytes_ + index * bytes, scales_[index], block.data());
    } else {
      decode_block(type_, bytes_ + index * bytes, block.data());
    }
    const std::uint64_t taken = std::min<std::uint64_t>(elements - skipped, out.size());
    std::copy_n(block.begin() + static_cast<std::ptrdiff_t>(skipped), taken, out.begin());
    first += taken;
    out = out.subspan(taken);
  }
}

}  // namespace plena
