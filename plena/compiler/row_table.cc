#include "plena/compiler/row_table.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

namespace plena {

namespace {

constexpr std::uint32_t kMaxTerms = 4;
constexpr double kUselessError = 0x1p-6;  // of an entry's largest value

double largest(std::span<const double> values) {
  double most = 0;
  for (const double v : values) most = std::isnan(v) ? HUGE_VAL : std::max(most, std::abs(v));
  return most;
}

// Splits entries into terms, one after the other.
class TermSplitter {
 public:
  TermSplitter(DataType hbm, std::size_t width)
      : codec_(hbm, kFp32),
        term_(width),
        elements_(width * hbm.width() / 8),
        scales_(hbm.is_mx() ? width / hbm.block : 0) {}

  /// Subtracts from `rest` what the type holds of it and returns that.
  std::span<const float> split_off(std::span<double> rest) {
    std::copy(rest.begin(), rest.end(), term_.begin());
    codec_.encode(term_.data(), term_.size(), elements_.data(), scales_.data());
    codec_.decode(elements_.data(), scales_.data(), 0, term_.size(), term_.data());
    for (std::size_t i = 0; i < rest.size(); ++i) rest[i] -= static_cast<double>(term_[i]);
    return term_;
  }

 private:
  HbmCodec codec_;
  std::vector<float> term_;
  std::vector<std::uint8_t> elements_;
  std::vector<std::uint8_t> scales_;
};

struct Terms {
  std::uint32_t count = 1;
  double error = 0;  // of the worst entry, relative to its largest value
};

// Terms that one entry needs for `precision`; `rows` is left with what they miss.
Terms terms_of(TermSplitter& splitter, std::span<double> rows, double precision) {
  const double size = largest(rows);
  Terms terms{.count = 0, .error = size == 0 ? 0.0 : 1.0};
  do {
    splitter.split_off(rows);
    ++terms.count;
    if (size != 0) terms.error = largest(rows) / size;
  } while (terms.error > precision && terms.count < kMaxTerms);
  return terms;
}

}  // namespace

Result<RowTable> make_row_table(const TableContents& contents, std::uint32_t mlen, DataType hbm,
                                ElementType sram) {
  RowTable table{.shape = {.entries = contents.entries, .rows = contents.rows}, .tensor = {}};
  if (contents.rows == 0 || contents.entries == 0) return table;
  const double half_ulp = std::ldexp(1.0, -static_cast<int>(sram.mantissa) - 1);
  std::vector<double> rows(std::size_t{contents.rows} * mlen);
  const auto fill = [&](std::uint64_t entry) {
    std::ranges::fill(rows, 0.0);
    contents.fill(entry, rows);
  };

  TermSplitter splitter(hbm, rows.size());
  double error = 0;
  for (std::uint64_t entry = 0; entry < contents.entries; ++entry) {
    fill(entry);
    const Terms terms = terms_of(splitter, rows, half_ulp);
    table.shape.terms = std::max(table.shape.terms, terms.count);
    error = std::max(error, terms.error);
  }
  if (error > kUselessError) {
    return fail_with_hint(
        ErrorCode::Unsupported,
        fmt::format("HBM_V_ACT_TYPE {} cannot hold {}", hbm.name(), contents.name),
        "choose a floating-point or MX type");
  }
  Quantiser stream(hbm);
  for (std::uint64_t entry = 0; entry < contents.entries; ++entry) {
    fill(entry);
    for (std::uint32_t term = 0; term < table.shape.terms; ++term) {
      stream.append(splitter.split_off(rows));
    }
  }
  table.tensor = std::move(stream).finish();
  return table;
}

}  // namespace plena
