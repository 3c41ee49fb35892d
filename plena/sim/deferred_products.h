// Products whose results nobody has asked for yet. Programs add up the products of a chain of
// tiles, write the sum out and go on with the next chain; what they write is looked at much later.
// Here chains are only noted, whole matrices of them, and computed when somebody looks at Vector
// SRAM or the array, or meanwhile by other threads (workers.h).
//
// Column blocks of M_MM and M_TMM that follow each other with the same rows become one product of
// many columns, and such products of rows that follow each other one of many rows. Nobody can tell:
// rules are checked when an instruction comes, sums keep their order, and whatever a noted product
// reads stays as it is until it was computed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "plena/machine/machine.h"
#include "plena/numerics/hbm_codec.h"
#include "plena/numerics/streamed_product.h"
#include "plena/sim/prepared_rows.h"
#include "plena/sim/workers.h"

namespace plena {

class PreparedProgram;

/// Weights of a tile: in the Matrix SRAM format, one way or the other, or bytes of HBM.
struct TileWeights {
  const std::uint8_t* columns = nullptr;  // element (k, c) of the factor at [k][c], or null
  const std::uint8_t* rows = nullptr;     // at [c][k], or null
  bool finite = false;                    // none is infinite or NaN
  bool in_place = false;                  // in Matrix SRAM, or as long as the tile is there
  const HbmCodec* codec = nullptr;        // of the bytes, where neither of the above is there
  StreamedRows bytes;

  friend bool operator==(const TileWeights&, const TileWeights&) = default;
};

/// Which product of M_MM or M_TMM: BLEN rows of Vector SRAM from element `rows` on times BLEN
/// columns of a tile or its transpose.
struct BlockProduct {
  std::uint64_t rows = 0;
  std::uint64_t place = 0;   // of the tile in Matrix SRAM
  std::uint32_t column = 0;  // the first
  bool transposed = false;
};

class DeferredProducts {
 public:
  DeferredProducts(Machine& machine, const PreparedProgram& program, Workers* workers);

  /// Something was noted: it is computed by finish() before Vector SRAM or the array is used.
  [[nodiscard]] bool any() const { return pending_; }
  void finish();

  // ---- chains of M_TMV. A chain begins where the array is clear.

  /// Whether a product of the MLEN lanes from `rows` on may be noted.
  [[nodiscard]] bool takes_row(std::uint64_t rows, bool array_is_clear);
  [[nodiscard]] bool in_row_chain() const { return kind_ == Kind::Row; }
  void add_row(std::uint64_t rows, std::uint64_t place, const TileWeights& weights);
  /// Ends a chain; false where none was noted, and then nothing else is.
  bool write_out_row(std::uint64_t address);

  // ---- chains of M_MM and M_TMM

  /// Notes M_MM or M_TMM of these addresses, as they are in registers, where the column block
  /// before foretells it; false where it does not. What is foretold breaks no rule.
  bool goes_on(std::uint32_t rows, std::uint32_t matrix, bool transposed) {
    if (next_ == last_) return false;
    Expected& expected = expected_[next_];
    if (expected.rows != rows || expected.matrix != matrix || expected.transposed != transposed)
      return false;
    expected.matrix += expected.step;
    ++next_;
    return true;
  }
  /// Whether another one may be noted.
  [[nodiscard]] bool takes_block(const BlockProduct& product, bool array_is_clear);
  void add_block(const BlockProduct& product, const TileWeights& weights);
  /// Ends a chain where the column block before foretells it; false where it does not. What is
  /// foretold breaks no rule.
  bool write_goes_on(std::uint64_t address, std::uint64_t stride) {
    if (blocks_ == 0 || next_ != last_ || next_ == first_term_ ||
        address != address_ + done_columns_ || stride != stride_)
      return false;
    ++blocks_;
    await_next_block();
    return true;
  }
  /// As write_out_row(), for BLEN rows `stride` rows of VLEN apart.
  bool write_out_block(std::uint64_t address, std::uint64_t stride);

  /// Elements of Vector SRAM are about to be written.
  void before_write(std::uint64_t element, std::uint64_t count) {
    packed_.before_write(element, element + count);
  }
  /// A tile of Matrix SRAM is about to be written.
  void before_load(std::uint64_t place) {
    if (pending_ && place < referred_.size() && referred_[place]) finish();
  }

 private:
  struct Term {
    std::uint64_t rows = 0;
    std::uint64_t place = 0;
    std::uint32_t column = 0;  // of the tile, where the product begins
    bool transposed = false;
    TileWeights weights;
    const void* prepared_rows = nullptr;  // for the kernel that takes them
  };
  // What the next column block does with a term.
  struct Expected {
    std::uint32_t rows, matrix;  // addresses
    std::uint32_t step;          // of `matrix` from block to block
    bool transposed;
  };
  // One chain of terms, or as many as there are column blocks: rows x columns of sums.
  struct Group {
    std::uint32_t first_term = 0, terms = 0;
    std::uint32_t rows = 0, columns = 0;
    std::uint8_t* out = nullptr;  // in Vector SRAM
    std::size_t out_pitch = 0;    // bytes between rows
    bool on_matrix_unit = false;
  };
  // Elements of Vector SRAM; from `begin` up to `end`.
  struct Span {
    std::uint64_t begin = UINT64_MAX, end = 0;
    [[nodiscard]] bool meets(const Span& other) const {
      return begin < other.end && other.begin < end;
    }
    void join(const Span& other) {
      begin = other.begin < begin ? other.begin : begin;
      end = other.end > end ? other.end : end;
    }
  };
  // A few of them: matrices whose output tiles alternate write two regions in turn.
  class Spans {
   public:
    [[nodiscard]] bool meets(const Span& other) const {
      for (std::size_t i = 0; i < count_; ++i) {
        if (spans_[i].meets(other)) return true;
      }
      return false;
    }
    void join(const Span& other) {
      for (std::size_t i = 0; i < count_; ++i) {
        const bool touches = spans_[i].begin <= other.end && other.begin <= spans_[i].end;
        if (touches || i + 1 == spans_.size()) return spans_[i].join(other);
      }
      spans_[count_++] = other;
    }
    void clear() { count_ = 0; }

   private:
    std::array<Span, 4> spans_;
    std::size_t count_ = 0;
  };
  enum class Kind : std::uint8_t { None, Row, Block };

  // What a thread takes at a time: groups of one row, whose weights follow each other in memory, or
  // columns of a group.
  struct Part {
    std::uint32_t first_group = 0, groups = 0;
    std::uint32_t first_column = 0, columns = 0;
  };

  [[nodiscard]] Span source(std::uint64_t rows, std::size_t count) const;
  [[nodiscard]] bool in_chain() const {
    return kind_ == Kind::Row || (kind_ == Kind::Block && (blocks_ == 0 || next_ != first_term_));
  }
  [[nodiscard]] bool takes(const Span& source, bool array_is_clear);
  void add(const Term& term, std::size_t rows);
  void expect_next_block(const Term& term);
  void await_next_block();
  [[nodiscard]] bool may_write(const Span& target);
  void split_group();
  void close_group(std::size_t rows, std::size_t columns);
  [[nodiscard]] bool goes_below(const Group& group) const;
  void seal_groups();
  bool prepare_for_matrix_unit(const Group& group);
  void append_parts(std::size_t group);
  void offer(std::size_t parts);

  // ---- computing
  void fold_chain();
  void compute(const Group& group) const;
  void compute(const Part& part) const;
  void compute_on_matrix_unit(const Group& group, const Part& part) const;
  const void* pack_weights(const Term& term, std::size_t begin, std::size_t end) const;
  void multiply(const Term& term, std::uint32_t column, std::size_t rows, std::size_t columns,
                float* out) const;
  void multiply_bytes(const Term& term, std::size_t columns, float* out) const;
  const std::uint8_t* decoded_rows(const TileWeights& weights, std::size_t begin,
                                   std::size_t end) const;
  struct Activations {
    const float* values;
    std::size_t stride;
  };
  [[nodiscard]] Activations activations(const Term& term, std::size_t rows) const;

  Machine& machine_;
  const PreparedProgram& program_;
  Workers* workers_;

  bool pending_ = false;
  bool offered_ = false;  // the workers have begun
  std::vector<Term> terms_;
  std::unique_ptr<Expected[]> expected_;  // of each term of a block chain
  std::vector<Group> groups_;
  std::size_t sealed_ = 0;   // groups that grow no more
  std::vector<Part> parts_;  // of those
  ArrangedRows arranged_;
  PackedRows packed_;
  std::uint64_t work_ = 0;  // multiply-adds of the groups
  Span sources_;            // of all terms
  Spans targets_;           // of the groups

  // The group that is growing: terms_[first_term_] … terms_.back().
  Kind kind_ = Kind::None;
  std::size_t first_term_ = 0;
  std::size_t next_ = 0, last_ = 0;  // what goes_on() expects, until last_
  std::uint32_t blocks_ = 0;         // chains that were written out
  std::uint32_t done_columns_ = 0;   // BLEN times as many
  std::uint32_t last_column_ = 0;    // the first column of the term that begins farthest right
  std::uint64_t address_ = 0, stride_ = 0;

  std::vector<bool> referred_;  // places of Matrix SRAM that terms read
  // Sweeps that end early are not worth noting: how many to pass by, by place.
  std::array<std::uint8_t, 64> pass_by_{};
};

}  // namespace plena
