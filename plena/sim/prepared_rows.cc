#include "plena/sim/prepared_rows.h"

#include <algorithm>

#include "plena/sim/prepared.h"

namespace plena {

namespace {
struct LanesScratch {};
}  // namespace

const void* ArrangedRows::at(std::uint64_t row, const PreparedProgram& program,
                             const Machine& machine) {
  const std::size_t lines = StreamedProduct::prepared_bytes(program.mlen) / sizeof(CacheLine);
  if (arranged_.empty()) arranged_.resize(kMost * lines);
  std::uint16_t& newest = newest_[program.mlen_divisor.quotient(row) % newest_.size()];
  if (newest >= count_ || rows_[newest] != row) {
    newest = static_cast<std::uint16_t>(count_++);
    rows_[newest] = row;
    auto* lanes = static_cast<float*>(thread_scratch<LanesScratch>(program.mlen * sizeof(float)));
    program.vector->to_f32(machine.vram.data() + row * program.vector_bytes, lanes, program.mlen);
    program.streamed_weights.prepare(lanes, program.mlen, &arranged_[newest * lines]);
  }
  return &arranged_[newest * lines];
}

const void* PackedRows::at(std::uint64_t first, std::size_t rows, const PreparedProgram& program,
                           const Machine& machine) {
  const std::size_t lines =
      MatrixUnit::packed_bytes(program.mlen, program.mlen) / sizeof(CacheLine);
  if (packed_.empty()) packed_.resize(kMost * lines);
  std::uint16_t& newest = newest_[program.mlen_divisor.quotient(first) % newest_.size()];
  if (newest >= count_ || rows_[newest] != Rows{first, rows}) {
    if (count_ == kMost) return nullptr;
    newest = static_cast<std::uint16_t>(count_++);
    rows_[newest] = {first, rows};
    const std::uint64_t end = first + (rows - 1) * std::uint64_t{program.vlen} + program.mlen;
    begin_ = count_ == 1 ? first : std::min(begin_, first);
    end_ = std::max(end_, end);
    program.matrix_unit->pack_rows(machine.vram.data() + first * program.vector_bytes, program.vlen,
                                   rows, program.mlen, &packed_[newest * lines]);
  }
  return &packed_[newest * lines];
}

}  // namespace plena
