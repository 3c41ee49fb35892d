// Scratch space of a run and the checks that several classes of instructions share.
#include <algorithm>

#include <fmt/format.h>

#include "plena/numerics/float_format.h"
#include "plena/sim/prepared.h"

namespace plena {

namespace {

constexpr std::size_t kWidestElement = 4;  // bytes

// Places of Matrix SRAM that may show a cached tile: a list of them is made for every run.
constexpr std::uint64_t kMostShown = 1024;

// MLEN up to which products are noted; larger ones are shared by threads one by one.
constexpr std::uint32_t kMostDeferred = 256;

}  // namespace

PreparedProgram::PreparedProgram(const Settings& s, const Dialect& d, SimdTarget target)
    : settings(s),
      dialect(d),
      counts_loops(s.max_loop_instructions != 0),
      mlen(s.mlen),
      blen(s.blen),
      hlen(s.hlen),
      vlen(s.vlen),
      heads(s.heads()),
      vlen_divisor(s.vlen),
      mlen_divisor(s.mlen),
      blen_divisor(s.blen),
      hlen_divisor(s.hlen),
      tile_divisor(std::uint64_t{s.mlen} * s.mlen),
      tile_elements(std::uint64_t{s.mlen} * s.mlen),
      vram_elements(s.vector_sram_size * s.vlen),
      mram_elements(s.matrix_sram_size * s.mlen),
      vector_format(s.vector_sram_type.element),
      matrix_format(d.has(RsSwitch::Mx) ? kFp32 : s.matrix_sram_type.element),
      scalar_format(d.has(RsSwitch::Memories) ? kBf16 : s.scalar_fp.element),
      vector_bytes(storage_bytes(vector_format)),
      matrix_bytes(storage_bytes(matrix_format)),
      simd(target),
      vector(&vector_kernels(vector_format, simd)),
      matrix(&matrix_kernels(matrix_format, simd)),
      weight_codec(s.hbm_m_weight_type, matrix_format, simd),
      matrix_kv_codec(s.hbm_m_kv_type, matrix_format, simd),
      activation_codec(s.hbm_v_act_type, vector_format, simd),
      vector_kv_codec(s.hbm_v_kv_type, vector_format, simd),
      streamed_weights(streamed_product(s.hbm_m_weight_type, matrix_format, s.mlen, s.blen, simd)),
      matrix_unit(vector_format == matrix_format
                      ? plena::matrix_unit(matrix_format, s.mlen, s.blen, simd)
                      : nullptr) {
  if (!d.has(RsSwitch::Mx)) return;
  for (const DataType type :
       {s.hbm_m_weight_type, s.hbm_m_kv_type, s.hbm_v_act_type, s.hbm_v_kv_type})
    rs_decoders.emplace_back(type);
}

Execution::Execution(Machine& m, const PreparedProgram& p, const RunOptions& options)
    : machine(m),
      program(p),
      observer(options.observer),
      shown(m.mram, p.mlen, p.matrix_bytes),
      reuses(options.fuse && !p.dialect.any_switch()),
      sweeps_ahead(reuses),
      sweeps(p.mlen, p.blen, (p.blen - 1) * std::uint64_t{p.vlen} + p.mlen),
      turned(*p.matrix, p.mlen, p.matrix_bytes),
      workers(options.workers),
      deferred(m, p, options.workers) {
  if (options.tile_cache != nullptr && options.tile_cache->attach(m, p)) {
    tile_cache = options.tile_cache;
  }
  // An observer may look at Matrix SRAM whenever it likes, and what the dialect's switches change
  // reads it as they please.
  const bool hidden = observer == nullptr && !p.dialect.any_switch();
  defers = hidden && options.fuse && p.mlen <= kMostDeferred;
  streams = hidden && options.fuse && p.streamed_weights;
  if (hidden && (streams || tile_cache != nullptr)) {
    shown.resize(std::min<std::uint64_t>(p.mram_elements / p.tile_elements, kMostShown),
                 tile_cache != nullptr ? &tile_cache->settled() : nullptr);
  }
  activations.resize(std::size_t{p.mlen} * std::max(p.blen, 1U));
  row_bytes.resize(std::size_t{p.vlen} * kWidestElement);
  scales.resize(p.vlen);
}

void Execution::note_fault(TrapCause cause, std::string values, std::string rule) {
  if (faulted && fault.cause <= cause) return;
  faulted = true;
  fault = Trap{cause, 0, std::move(values), std::move(rule)};
}

void Execution::explain_rows(std::uint64_t address, std::uint64_t rows, const char* operand) {
  require(program.vlen_divisor.divides(address), TrapCause::MisalignedAddress, [&] {
    return std::pair(
        fmt::format("{} = {}", operand, address),
        fmt::format("a Vector SRAM row address is a multiple of VLEN = {} (semantics 3)",
                    program.vlen));
  });
  require(address + rows * program.vlen <= program.vram_elements, TrapCause::AddressOutOfRange,
          [&] {
            return std::pair(
                fmt::format("{} = {}, {} row(s) of {}", operand, address, rows, program.vlen),
                fmt::format("Vector SRAM has {} elements (semantics 6.15)", program.vram_elements));
          });
}

void Execution::explain_windows(std::uint64_t address, std::uint64_t rows, const char* operand) {
  require(program.mlen_divisor.divides(address), TrapCause::MisalignedAddress, [&] {
    return std::pair(
        fmt::format("{} = {}", operand, address),
        fmt::format(
            "the address of a window of Vector SRAM is a multiple of MLEN = {} (semantics 3)",
            program.mlen));
  });
  require(address + (rows - 1) * program.vlen + program.mlen <= program.vram_elements,
          TrapCause::AddressOutOfRange, [&] {
            return std::pair(
                fmt::format("{} = {}, {} row(s) of {} lanes, {} apart", operand, address, rows,
                            program.mlen, program.vlen),
                fmt::format("Vector SRAM has {} elements (semantics 6.15)", program.vram_elements));
          });
}

}  // namespace plena
