#include "plena/compiler/row_table.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "plena/base/parallel.h"

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

// Entries whose needs are found out at a time.
constexpr std::uint64_t kEntriesAtATime = 1024;

// Rows of one entry after the other.
class EntryRows {
 public:
  EntryRows(const TableContents& contents, std::uint32_t mlen)
      : contents_(contents), rows_(std::size_t{contents.rows} * mlen) {}

  std::span<double> fill(std::uint64_t entry) {
    std::ranges::fill(rows_, 0.0);
    contents_.fill(entry, rows_);
    return rows_;
  }

 private:
  const TableContents& contents_;
  std::vector<double> rows_;
};

Terms worst(Terms a, Terms b) {
  return {std::max(a.count, b.count), std::max(a.error, b.error)};
}

// What the worst entry needs, the entries taken on all cores.
Terms terms_of(const TableContents& contents, std::uint32_t mlen, DataType hbm, double precision) {
  const std::uint64_t runs = (contents.entries + kEntriesAtATime - 1) / kEntriesAtATime;
  std::vector<Terms> of_runs(runs);
  const auto measure = [&](std::size_t run) -> Status {
    EntryRows rows(contents, mlen);
    TermSplitter splitter(hbm, std::size_t{contents.rows} * mlen);
    const std::uint64_t first = run * kEntriesAtATime;
    for (std::uint64_t entry = first; entry < std::min(contents.entries, first + kEntriesAtATime);
         ++entry) {
      of_runs[run] = worst(of_runs[run], terms_of(splitter, rows.fill(entry), precision));
    }
    return {};
  };
  [[maybe_unused]] const Status measured = for_each_piece(runs, measure);  // cannot fail
  Terms all;
  for (const Terms& terms : of_runs) all = worst(all, terms);
  return all;
}

}  // namespace

Result<TableShape> measure_table(const TableContents& contents, std::uint32_t mlen, DataType hbm,
                                 ElementType sram) {
  TableShape shape{.entries = contents.entries, .rows = contents.rows};
  if (contents.rows == 0 || contents.entries == 0) return shape;
  const double half_ulp = std::ldexp(1.0, -static_cast<int>(sram.mantissa) - 1);
  const Terms terms = terms_of(contents, mlen, hbm, half_ulp);
  shape.terms = terms.count;
  if (terms.error <= kUselessError) return shape;
  return fail_with_hint(ErrorCode::Unsupported,
                        fmt::format("HBM_V_ACT_TYPE {} cannot hold {}", hbm.name(), contents.name),
                        "choose a floating-point or MX type");
}

TensorPieces pack_table(TableContents contents, const TableShape& shape, std::uint32_t mlen,
                        DataType hbm) {
  constexpr std::uint64_t kEntries = 64;  // of a piece
  TensorPieces table{.type = hbm};
  if (shape.rows == 0) return table;
  const auto shared = std::make_shared<const TableContents>(std::move(contents));
  for (std::uint64_t first = 0; first < shape.entries; first += kEntries) {
    const std::uint64_t count = std::min(kEntries, shape.entries - first);
    table.add(count * shape.stored_rows() * mlen, [=](Quantiser& to) {
      EntryRows rows(*shared, mlen);
      TermSplitter splitter(hbm, std::size_t{shape.rows} * mlen);
      for (std::uint64_t entry = first; entry < first + count; ++entry) {
        const std::span<double> rest = rows.fill(entry);
        for (std::uint32_t term = 0; term < shape.terms; ++term) {
          to.append(splitter.split_off(rest));
        }
      }
    });
  }
  return table;
}

}  // namespace plena
