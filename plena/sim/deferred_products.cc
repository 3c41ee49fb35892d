#include "plena/sim/deferred_products.h"

#include <algorithm>

#include "plena/numerics/scratch.h"
#include "plena/sim/prepared.h"

namespace plena {

namespace {

// Enough for the others to be busy while this thread goes on, and no more than fits in a cache.
constexpr std::size_t kMostTerms = 4096;
constexpr std::size_t kMostGroups = 512;

// Multiply-adds that are worth another thread's waking: some ten microseconds.
constexpr std::uint64_t kLeastWork = std::uint64_t{1} << 18;

// A sweep of fewer column blocks is quicker without being noted, and so are probably the next ones.
constexpr std::uint32_t kFewBlocks = 3;
constexpr std::uint8_t kPassBy = 63;

struct SumsScratch {};
struct ActivationScratch {};
struct DecodedTileScratch {};

}  // namespace

DeferredProducts::DeferredProducts(Machine& machine, const PreparedProgram& program,
                                   Workers* workers)
    : machine_(machine), program_(program), workers_(workers) {}

DeferredProducts::Span DeferredProducts::source(std::uint64_t rows, std::size_t count) const {
  return {rows, rows + (count - 1) * std::uint64_t{program_.vlen} + program_.mlen};
}

const void* DeferredProducts::ArrangedRows::at(std::uint64_t rows, const PreparedProgram& program,
                                               const Machine& machine) {
  const std::size_t lines = StreamedProduct::prepared_bytes(program.mlen) / sizeof(CacheLine);
  if (arranged_.empty()) arranged_.resize(kMost * lines);
  std::uint16_t& newest = newest_[program.mlen_divisor.quotient(rows) % newest_.size()];
  if (newest >= count_ || rows_[newest] != rows) {
    newest = static_cast<std::uint16_t>(count_++);
    rows_[newest] = rows;
    auto* values =
        static_cast<float*>(thread_scratch<ActivationScratch>(program.mlen * sizeof(float)));
    program.vector->to_f32(machine.vram.data() + rows * program.vector_bytes, values, program.mlen);
    program.streamed_weights.prepare(values, program.mlen, &arranged_[newest * lines]);
  }
  return &arranged_[newest * lines];
}

// ------------------------------------------------------------ noting

// A chain begins with a clear array, and goes on where its beginning was noted.
bool DeferredProducts::takes(const Span& source, bool array_is_clear) {
  if (array_is_clear == in_chain()) return false;
  const bool full = terms_.size() + 1 >= kMostTerms || groups_.size() + 2 >= kMostGroups;
  if (!full && !source.meets(targets_)) return true;
  if (in_chain()) return false;
  finish();
  return true;
}

void DeferredProducts::add(const Term& term, std::size_t rows) {
  if (terms_.capacity() == 0) {  // other threads read them while they grow
    terms_.reserve(kMostTerms);
    groups_.reserve(kMostGroups);
    expected_.reserve(kMostTerms);
  }
  append(term);
  if (term.weights.columns != nullptr) {  // else it reads HBM, which only instructions write
    if (term.place >= referred_.size()) referred_.resize(term.place + 1, false);
    referred_[term.place] = true;
  }
  sources_.join(source(term.rows, rows));
  pending_ = true;
}

void DeferredProducts::append(const Term& term) {
  terms_.push_back(term);
  const std::uint64_t pitch = term.transposed ? program_.mlen : 1;
  const std::uint64_t next =
      term.place * program_.tile_elements + (term.column + program_.blen) * pitch;
  expected_.push_back({static_cast<std::uint32_t>(term.rows), static_cast<std::uint32_t>(next),
                       static_cast<std::uint32_t>(program_.blen * pitch), term.transposed});
  last_column_ = std::max(last_column_, term.column);
}

bool DeferredProducts::takes_row(std::uint64_t rows, bool array_is_clear) {
  if (kind_ == Kind::Block) {
    if (in_chain()) return false;
    split_group();
  }
  if (arranged_.full()) {
    if (in_chain()) return false;
    finish();
  }
  return takes(source(rows, 1), array_is_clear);
}

void DeferredProducts::add_row(std::uint64_t rows, std::uint64_t place,
                               const TileWeights& weights) {
  if (kind_ == Kind::None) first_term_ = terms_.size();
  kind_ = Kind::Row;
  Term term{.rows = rows, .place = place, .weights = weights};
  if (weights.columns == nullptr) term.arranged = arranged_.at(rows, program_, machine_);
  add(term, 1);
}

bool DeferredProducts::takes_block(const BlockProduct& product, bool array_is_clear) {
  if (kind_ == Kind::Row) return false;
  if (kind_ == Kind::Block && blocks_ != 0) {
    if (terms_.size() + (next_ - first_term_) + 1 >= kMostTerms) return false;
    split_group();
  }
  std::uint8_t& pass_by = pass_by_[product.place % pass_by_.size()];
  if (array_is_clear && pass_by != 0) {
    --pass_by;
    return false;
  }
  return takes(source(product.rows, program_.blen), array_is_clear);
}

void DeferredProducts::add_block(const BlockProduct& product, const TileWeights& weights) {
  if (kind_ == Kind::None) {
    kind_ = Kind::Block;
    first_term_ = next_ = last_ = terms_.size();
    blocks_ = done_columns_ = last_column_ = 0;
  }
  add({product.rows, product.place, product.column, product.transposed, weights}, program_.blen);
}

// Whether what is noted stays right when `target` is only written later.
bool DeferredProducts::may_write(const Span& target) {
  if (!target.meets(sources_) && !target.meets(targets_)) return true;
  finish();
  return false;
}

bool DeferredProducts::write_out_row(std::uint64_t address) {
  if (kind_ != Kind::Row) return false;
  if (!may_write({address, address + program_.mlen})) return false;
  address_ = address;
  stride_ = 1;
  close_group(1, program_.mlen);
  return true;
}

bool DeferredProducts::write_out_block(std::uint64_t address, std::uint64_t stride) {
  if (kind_ != Kind::Block || !in_chain()) return false;
  const std::uint64_t pitch = stride * program_.vlen;
  if (blocks_ != 0) {
    if (next_ == last_ && address == address_ + done_columns_ && stride == stride_) {
      ++blocks_;
      await_next_block();
      return true;
    }
    if (terms_.size() + (next_ - first_term_) >= kMostTerms || groups_.size() + 2 >= kMostGroups) {
      finish();
      return false;
    }
    split_group();
  }
  // Later column blocks go on to the right of this one.
  if (pitch < program_.mlen ||
      !may_write({address, address + (program_.blen - 1) * pitch + program_.mlen})) {
    finish();
    return false;
  }
  address_ = address;
  stride_ = stride;
  blocks_ = 1;
  await_next_block();
  return true;
}

// A column block has been written out. The tile may have another one.
void DeferredProducts::await_next_block() {
  done_columns_ += program_.blen;
  next_ = first_term_;
  last_ = last_column_ + done_columns_ < program_.mlen ? terms_.size() : first_term_;
}

// Ends the growing group; a chain that has begun differently from the ones before becomes the next
// group's first.
void DeferredProducts::split_group() {
  const std::size_t begun = next_ - first_term_;
  const std::size_t from = first_term_;
  const std::uint32_t column = done_columns_;
  close_group(program_.blen, column);
  if (begun == 0) return;
  kind_ = Kind::Block;
  first_term_ = terms_.size();
  for (std::size_t i = 0; i < begun; ++i) {
    Term term = terms_[from + i];
    term.column += column;
    append(term);
  }
  next_ = last_ = terms_.size();
  pending_ = true;
}

void DeferredProducts::close_group(std::size_t rows, std::size_t columns) {
  const std::uint64_t pitch = stride_ * program_.vlen;
  Group group{static_cast<std::uint32_t>(first_term_),
              static_cast<std::uint32_t>(terms_.size() - first_term_),
              static_cast<std::uint32_t>(rows), static_cast<std::uint32_t>(columns)};
  for (std::size_t r = rows; r-- > 0;) {
    group.out = machine_.vram.writable((address_ + r * pitch) * program_.vector_bytes,
                                       columns * program_.vector_bytes);
  }
  group.out_pitch = pitch * program_.vector_bytes;
  groups_.push_back(group);
  targets_.join({address_, address_ + (rows - 1) * pitch + columns});
  work_ += group.terms * rows * columns * program_.mlen;
  if (kind_ == Kind::Block && blocks_ < kFewBlocks)
    pass_by_[terms_[first_term_].place % pass_by_.size()] = kPassBy;
  kind_ = Kind::None;
  first_term_ = next_ = last_ = terms_.size();
  blocks_ = done_columns_ = last_column_ = 0;
  offer();
}

// ------------------------------------------------------------ computing

void DeferredProducts::offer() {
  if (workers_ == nullptr || workers_->threads() == 1) return;
  if (!offered_) {
    if (work_ < kLeastWork) return;
    workers_->open(
        [](const void* self, std::size_t i) {
          const auto& deferred = *static_cast<const DeferredProducts*>(self);
          deferred.compute(deferred.groups_[i]);
        },
        this);
    offered_ = true;
  }
  workers_->offer(groups_.size());
}

void DeferredProducts::finish() {
  if (kind_ == Kind::Block && blocks_ != 0) split_group();
  if (kind_ != Kind::None) fold_chain();
  if (offered_) {
    workers_->close();
  } else {
    for (const Group& group : groups_) compute(group);
  }
  pending_ = offered_ = false;
  terms_.clear();
  expected_.clear();
  groups_.clear();
  arranged_.clear();
  first_term_ = next_ = last_ = 0;
  work_ = 0;
  sources_ = targets_ = {};
  std::fill(referred_.begin(), referred_.end(), false);
}

// A chain that was not written out yet stays in the array.
void DeferredProducts::fold_chain() {
  const bool row = kind_ == Kind::Row;
  for (std::size_t i = first_term_; i < terms_.size(); ++i) {
    if (row) {
      multiply(terms_[i], 0, 1, program_.mlen, machine_.array.row.data());
    } else {
      multiply(terms_[i], terms_[i].column, program_.blen, program_.blen,
               machine_.array.block.data());
    }
  }
  kind_ = Kind::None;
}

void DeferredProducts::compute(const Group& group) const {
  const std::size_t sums = std::size_t{group.rows} * group.columns;
  auto* out = static_cast<float*>(thread_scratch<SumsScratch>(sums * sizeof(float)));
  std::fill_n(out, sums, 0.0F);
  for (std::size_t i = group.first_term; i < group.first_term + group.terms; ++i)
    multiply(terms_[i], terms_[i].column, group.rows, group.columns, out);
  for (std::size_t r = 0; r < group.rows; ++r)
    program_.vector->from_f32(out + r * group.columns, group.out + r * group.out_pitch,
                              group.columns);
}

// `rows` windows of a term as f32.
DeferredProducts::Activations DeferredProducts::activations(const Term& term,
                                                            std::size_t rows) const {
  const auto& p = program_;
  const std::uint8_t* lanes = machine_.vram.data() + term.rows * p.vector_bytes;
  if (p.vector_format == kFp32) return {reinterpret_cast<const float*>(lanes), p.vlen};
  auto* values =
      static_cast<float*>(thread_scratch<ActivationScratch>(rows * p.mlen * sizeof(float)));
  for (std::size_t r = 0; r < rows; ++r)
    p.vector->to_f32(lanes + r * p.vlen * p.vector_bytes, values + r * p.mlen, p.mlen);
  return {values, p.mlen};
}

// out[rows][columns] += the term's rows times its columns from `column` on.
void DeferredProducts::multiply(const Term& term, std::uint32_t column, std::size_t rows,
                                std::size_t columns, float* out) const {
  const TileWeights& weights = term.weights;
  if (weights.columns == nullptr) return multiply_bytes(term, columns, out);
  const Activations a = activations(term, rows);
  const ProductShape shape{rows, columns, program_.mlen, program_.blen, weights.finite};
  program_.matrix->product(shape, a.values, a.stride,
                           weights.columns + column * program_.matrix_bytes, program_.mlen, out,
                           columns);
}

// The same for the one row and all columns of M_TMV: the bytes as they lie, and the tile's rows
// that cannot be taken so decoded.
void DeferredProducts::multiply_bytes(const Term& term, std::size_t columns, float* out) const {
  const auto& p = program_;
  const TileWeights& weights = term.weights;
  const std::size_t done =
      p.streamed_weights.product(term.arranged, p.mlen, weights.bytes, columns, out);
  if (done == columns) [[likely]]
    return;
  const std::size_t row_bytes = p.mlen * p.matrix_bytes;
  auto* tile = static_cast<std::uint8_t*>(thread_scratch<DecodedTileScratch>(row_bytes * columns));
  for (std::size_t row = done; row < columns; ++row) {
    weights.codec->decode(weights.bytes.elements + row * weights.bytes.element_pitch,
                          weights.bytes.scales + row * weights.bytes.scale_pitch, 0, p.mlen,
                          tile + row * row_bytes);
  }
  const ProductShape rest{1, columns - done, p.mlen, p.blen};
  const Activations a = activations(term, 1);
  p.matrix->product_transposed(rest, a.values, a.stride, tile + done * row_bytes, p.mlen,
                               out + done, p.mlen);
}

}  // namespace plena
