#include "plena/sim/deferred_products.h"

#include <algorithm>

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

}  // namespace

DeferredProducts::DeferredProducts(Machine& machine, const PreparedProgram& program,
                                   Workers* workers)
    : machine_(machine), program_(program), workers_(workers) {}

DeferredProducts::Span DeferredProducts::source(std::uint64_t rows, std::size_t count) const {
  return {rows, rows + (count - 1) * std::uint64_t{program_.vlen} + program_.mlen};
}

// ------------------------------------------------------------ noting

// A chain begins with a clear array, and goes on where its beginning was noted.
bool DeferredProducts::takes(const Span& source, bool array_is_clear) {
  if (array_is_clear == in_chain()) return false;
  const bool full = terms_.size() + 1 >= kMostTerms || groups_.size() + 2 >= kMostGroups;
  if (!full && !targets_.meets(source)) return true;
  if (in_chain()) return false;
  finish();
  return true;
}

void DeferredProducts::add(const Term& term, std::size_t rows) {
  if (terms_.capacity() == 0) {  // other threads read them while they grow
    // A chain that was begun may come twice: split_group().
    terms_.reserve(2 * kMostTerms);
    groups_.reserve(kMostGroups);
    parts_.reserve(2 * kMostGroups);
    expected_ = std::make_unique_for_overwrite<Expected[]>(2 * kMostTerms);
  }
  terms_.push_back(term);
  if (kind_ == Kind::Block) expect_next_block(term);
  if (term.weights.in_place) {
    if (term.place >= referred_.size()) referred_.resize(term.place + 1, false);
    referred_[term.place] = true;
  }
  sources_.join(source(term.rows, rows));
  pending_ = true;
}

// Of the last term.
void DeferredProducts::expect_next_block(const Term& term) {
  const std::uint64_t pitch = term.transposed ? program_.mlen : 1;
  const std::uint64_t next =
      term.place * program_.tile_elements + (term.column + program_.blen) * pitch;
  expected_[terms_.size() - 1] = {
      static_cast<std::uint32_t>(term.rows), static_cast<std::uint32_t>(next),
      static_cast<std::uint32_t>(program_.blen * pitch), term.transposed};
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
  if (weights.columns == nullptr) term.prepared_rows = arranged_.at(rows, program_, machine_);
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
  if (!target.meets(sources_) && !targets_.meets(target)) return true;
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
    if (terms_.size() + (next_ - first_term_) >= kMostTerms || groups_.size() + 2 >= kMostGroups) {
      finish();
      return false;
    }
    split_group();
  }
  // Later column blocks go on to the right of this one.
  const Span target{address, address + (program_.blen - 1) * pitch + program_.mlen};
  if (pitch < program_.mlen || target.end > program_.vram_elements || !may_write(target)) {
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
  const std::vector<Term> begun(terms_.begin() + static_cast<std::ptrdiff_t>(first_term_),
                                terms_.begin() + static_cast<std::ptrdiff_t>(next_));
  const std::uint32_t column = done_columns_;
  close_group(program_.blen, column);
  if (begun.empty()) return;
  kind_ = Kind::Block;
  first_term_ = terms_.size();
  for (Term term : begun) {
    term.column += column;
    terms_.push_back(term);
    expect_next_block(term);
  }
  next_ = last_ = terms_.size();
  pending_ = true;
}

void DeferredProducts::close_group(std::size_t rows, std::size_t columns) {
  const std::uint64_t pitch = stride_ * program_.vlen;
  if (kind_ == Kind::Block && blocks_ < kFewBlocks)
    pass_by_[terms_[first_term_].place % pass_by_.size()] = kPassBy;
  Group group{static_cast<std::uint32_t>(first_term_),
              static_cast<std::uint32_t>(terms_.size() - first_term_),
              static_cast<std::uint32_t>(rows), static_cast<std::uint32_t>(columns)};
  for (std::size_t r = rows; r-- > 0;) {
    group.out = machine_.vram.writable((address_ + r * pitch) * program_.vector_bytes,
                                       columns * program_.vector_bytes);
  }
  group.out_pitch = pitch * program_.vector_bytes;
  if (goes_below(group)) {
    groups_.back().rows += group.rows;
    terms_.resize(first_term_);
  } else {
    seal_groups();
    groups_.push_back(group);
  }
  const Span target{address_, address_ + (rows - 1) * pitch + columns};
  targets_.join(target);
  packed_.written_later(target.begin, target.end);
  work_ += group.terms * rows * columns * program_.mlen;
  kind_ = Kind::None;
  first_term_ = next_ = last_ = terms_.size();
  blocks_ = done_columns_ = last_column_ = 0;
  // The last part may get another group.
  if (parts_.size() > 1) offer(parts_.size() - 1);
}

// Whether a group is what the last one would have for the rows below its own.
bool DeferredProducts::goes_below(const Group& group) const {
  if (kind_ != Kind::Block || groups_.size() == sealed_) return false;
  const Group& above = groups_.back();
  if (above.terms != group.terms || above.columns != group.columns ||
      above.out_pitch != group.out_pitch || above.out + above.rows * above.out_pitch != group.out ||
      above.rows + group.rows > program_.mlen || above.rows % program_.blen != 0)
    return false;
  for (std::size_t i = 0; i < group.terms; ++i) {
    const Term& upper = terms_[above.first_term + i];
    const Term& lower = terms_[group.first_term + i];
    if (upper.rows + above.rows * std::uint64_t{program_.vlen} != lower.rows ||
        upper.column != lower.column || upper.transposed != lower.transposed ||
        upper.weights != lower.weights)
      return false;
  }
  return true;
}

// All groups there are get no further rows.
void DeferredProducts::seal_groups() {
  for (; sealed_ < groups_.size(); ++sealed_) {
    groups_[sealed_].on_matrix_unit = prepare_for_matrix_unit(groups_[sealed_]);
    append_parts(sealed_);
  }
}

// Packs the rows of a group that the matrix unit can take; false where it cannot.
bool DeferredProducts::prepare_for_matrix_unit(const Group& group) {
  if (program_.matrix_unit == nullptr || group.rows < MatrixUnit::kPanel ||
      group.columns != program_.mlen)
    return false;
  for (std::size_t i = group.first_term; i < group.first_term + group.terms; ++i) {
    Term& term = terms_[i];
    if (!term.transposed || term.column != 0 || term.weights.columns != nullptr) return false;
    term.prepared_rows = packed_.at(term.rows, group.rows, program_, machine_);
    if (term.prepared_rows == nullptr) return false;
  }
  return true;
}

// Groups of one row are handed out a few at a time, so that most tiles were asked for by the thread
// that needs them; groups of many rows in halves, since often somebody looks after each of them.
void DeferredProducts::append_parts(std::size_t group) {
  constexpr std::size_t kTogether = 2;
  const auto index = static_cast<std::uint32_t>(group);
  if (groups_[group].on_matrix_unit) {
    const std::uint32_t half = program_.mlen / 2;
    parts_.push_back({index, 1, 0, half});
    parts_.push_back({index, 1, half, half});
    return;
  }
  const bool single = groups_[group].rows == 1;
  if (single && !parts_.empty()) {
    Part& last = parts_.back();
    if (last.groups < kTogether && groups_[last.first_group].rows == 1) {
      ++last.groups;
      return;
    }
  }
  parts_.push_back({index, 1, 0, 0});
}

// The others may begin with these.
void DeferredProducts::offer(std::size_t parts) {
  if (workers_ == nullptr || workers_->threads() == 1) return;
  if (!offered_) {
    if (work_ < kLeastWork && !workers_->shares_all()) return;
    workers_->open(
        [](const void* self, std::size_t i) {
          const auto& deferred = *static_cast<const DeferredProducts*>(self);
          deferred.compute(deferred.parts_[i]);
        },
        this);
    offered_ = true;
  }
  workers_->offer(parts);
}

void DeferredProducts::finish() {
  if (kind_ == Kind::Block && blocks_ != 0) split_group();
  if (kind_ != Kind::None) fold_chain();
  seal_groups();
  offer(parts_.size());
  if (offered_) {
    workers_->close();
  } else {
    for (const Part& part : parts_) compute(part);
  }
  pending_ = offered_ = false;
  terms_.clear();
  groups_.clear();
  arranged_.clear();
  packed_.after_batch();
  parts_.clear();
  sealed_ = 0;
  first_term_ = next_ = last_ = 0;
  work_ = 0;
  sources_ = {};
  targets_.clear();
  std::fill(referred_.begin(), referred_.end(), false);
}

}  // namespace plena
