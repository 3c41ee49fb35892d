// Inside the engine: what a program becomes before it runs, and what handlers work on.
// Not for other rooms; they use engine.h.
#pragma once

#include <cstdint>
#include <vector>

#include "plena/base/divisor.h"
#include "plena/machine/machine.h"
#include "plena/numerics/hbm_codec.h"
#include "plena/numerics/matrix_kernels.h"
#include "plena/numerics/matrix_unit.h"
#include "plena/numerics/rs_formats.h"
#include "plena/numerics/streamed_product.h"
#include "plena/numerics/vector_kernels.h"
#include "plena/sim/column_sweeps.h"
#include "plena/sim/deferred_products.h"
#include "plena/sim/engine.h"
#include "plena/sim/shown_tiles.h"
#include "plena/sim/tile_cache.h"
#include "plena/sim/turned_tiles.h"
#include "plena/sim/workers.h"

namespace plena {

struct Execution;
struct Prepared;

/// Executes one instruction: checks every rule first, then changes state. False means that it
/// trapped, that `execution.fault` says why, and that nothing has changed.
using Handler = bool (*)(Execution& execution, const Prepared& instruction);

/// How the dispatch loop treats an instruction. The frequent cheap ones are cases of the loop
/// itself; everything else is a call.
enum class Code : std::uint8_t {
  Halt,  // past the last instruction
  Call,  // handler, then the next instruction
  Jump,  // handler, then wherever execution.next_pc says
  Break,
  Nothing,  // an instruction whose only effect vanishes, such as a write to gp0
  LoopStart,
  LoopEnd,
  AddInt,
  AddiInt,
  SubInt,
  MulInt,
  LoadImmediate,
  SetAddressRegister,
  SetScale,
  SetStride,
  SetMask,
  FirstPair,  // from here on the pairs of PLENA_FUSED_PAIRS, in its order
};

// Instructions that follow each other so often that the loop goes from the first straight to the
// second: fuse_pair(first, second). Names are the loop's labels.
#define PLENA_FUSED_PAIRS(fuse_pair)                                                          \
  fuse_pair(add_int, add_int) fuse_pair(add_int, addi_int) fuse_pair(add_int, call)           \
      fuse_pair(add_int, loop_end) fuse_pair(addi_int, add_int) fuse_pair(addi_int, addi_int) \
          fuse_pair(addi_int, call) fuse_pair(addi_int, loop_end) fuse_pair(call, add_int)    \
              fuse_pair(call, addi_int) fuse_pair(call, call) fuse_pair(call, loop_end)
inline constexpr std::size_t kPairCount = 12;
inline constexpr std::size_t kCodeCount = static_cast<std::size_t>(Code::FirstPair) + kPairCount;

// 32 bytes: its place in the program is a shift away from its address.
struct alignas(32) Prepared {
  Handler handler = nullptr;
  std::uint32_t imm = 0;
  std::uint32_t partner = 0;  // C_LOOP_END: index of its C_LOOP_START
  Code code = Code::Halt;
  std::uint8_t rd = 0;
  std::uint8_t rs1 = 0;
  std::uint8_t rs2 = 0;
  std::uint8_t select = 0;
  std::uint8_t order = 0;
};

/// Everything that is the same for every run of a program on machines of one kind.
class PreparedProgram {
 public:
  PreparedProgram(const Settings& settings, const Dialect& dialect, SimdTarget simd);

  Settings settings;
  Dialect dialect;
  std::vector<Instruction> decoded;
  std::vector<Prepared> code;   // one a word, then a Halt
  std::vector<Prepared> fused;  // the same, but where a pair begins its code says so
  bool counts_loops = false;    // MAX_LOOP_INSTRUCTIONS is set

  // Sizes the handlers need, in elements unless named otherwise.
  std::uint32_t mlen, blen, hlen, vlen, heads;
  Divisor vlen_divisor, mlen_divisor, blen_divisor, hlen_divisor, tile_divisor;
  std::uint64_t tile_elements;  // MLEN x MLEN
  std::uint64_t vram_elements, mram_elements;
  ElementType vector_format, matrix_format, scalar_format;
  std::size_t vector_bytes, matrix_bytes;  // storage of one element
  SimdTarget simd;
  const VectorKernels* vector;
  const MatrixKernels* matrix;
  HbmCodec weight_codec, matrix_kv_codec;      // HBM to Matrix SRAM
  HbmCodec activation_codec, vector_kv_codec;  // HBM to and from Vector SRAM
  StreamedProduct streamed_weights;            // M_TMV of a weight tile as it lies in HBM; or null
  const MatrixUnit* matrix_unit;               // for many rows of the Vector SRAM format; or null
  // Codecs under rs-mx, in the order weight, matrix KV, activation, vector KV; else none.
  std::vector<RsDecoder> rs_decoders;
};

/// Rows of Vector SRAM that were widened to f32 and not written since: products of an input with
/// one tile after the other widen it once.
class LoadedRows {
 public:
  [[nodiscard]] bool hold(std::uint64_t address, std::uint64_t rows) const {
    return rows_ == rows && begin_ == address;
  }
  /// `rows` rows that take up `count` elements from `address` on, with what lies between them.
  void loaded(std::uint64_t address, std::uint64_t rows, std::uint64_t count) {
    begin_ = address;
    end_ = address + count;
    rows_ = rows;
  }
  void before_write(std::uint64_t element, std::uint64_t count) {
    if (element < end_ && element + count > begin_) rows_ = 0;
  }

 private:
  std::uint64_t begin_ = 0, end_ = 0;
  std::uint64_t rows_ = 0;  // 0: none
};

/// One run: the machine, its program, and scratch space that is reused by every instruction.
struct Execution {
  Execution(Machine& m, const PreparedProgram& p, const RunOptions& options);
  ~Execution() {
    deferred.finish();
    shown.settle();
  }
  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;

  Machine& machine;
  const PreparedProgram& program;
  std::uint64_t next_pc = 0;  // for Code::Jump: this instruction's pc on entry, the next on return

  Observer* observer = nullptr;  // wants to see transfers

  TileCache* tile_cache = nullptr;  // null: every prefetch decodes into Matrix SRAM
  ShownTiles shown;                 // what Matrix SRAM holds without a copy
  bool streams = false;             // products may be taken from HBM's bytes
  bool reuses = false;              // rows may be used as they were widened before
  bool sweeps_ahead = false;        // column blocks may be computed before they are asked for
  ColumnSweeps sweeps;
  TurnedTiles turned;
  Workers* workers = nullptr;  // null: this thread alone
  bool defers = false;         // products may be computed later than their instructions
  DeferredProducts deferred;

  bool faulted = false;
  Trap fault;  // valid when faulted

  std::vector<float> activations;       // rows of V as f32
  LoadedRows activation_rows;           // which, where they may be used again
  std::vector<std::uint8_t> row_bytes;  // one row of any format, for results and transfers
  std::vector<std::uint8_t> scales;     // scale bytes of one row
  std::vector<float> row_values;        // one row as f32 (dialect plena-rs)

  /// Notes a broken rule; of several the earlier in the order of semantics 7 stays.
  [[gnu::cold]] [[gnu::noinline]] void note_fault(TrapCause cause, std::string values,
                                                  std::string rule);

  /// `describe()` returns {values, rule}; it runs only when the rule is broken.
  template <class Describe>
  [[gnu::always_inline]] void require(bool holds, TrapCause cause, const Describe& describe) {
    if (!holds) [[unlikely]]
      describe_fault(cause, describe);
  }

  [[nodiscard]] std::uint32_t gp(std::uint8_t index) const { return machine.gp[index]; }

  [[nodiscard]] const std::uint8_t* vram(std::uint64_t element) {
    if (deferred.any()) deferred.finish();
    return machine.vram.data() + element * program.vector_bytes;
  }
  /// Elements are about to be written, now or when a product that was noted is computed.
  void before_vram_write(std::uint64_t element, std::uint64_t count) {
    sweeps.before_write(element, count);
    activation_rows.before_write(element, count);
  }
  std::uint8_t* writable_vram(std::uint64_t element, std::uint64_t count) {
    if (deferred.any()) deferred.finish();
    before_vram_write(element, count);
    deferred.before_write(element, count);
    return machine.vram.writable(element * program.vector_bytes, count * program.vector_bytes);
  }
  /// For reading inside the tile that `element` lies in.
  [[nodiscard]] const std::uint8_t* mram(std::uint64_t element) {
    const std::uint64_t place = program.tile_divisor.quotient(element);
    if (const CachedTile* tile = shown.cached(place)) {
      return tile->rows + program.tile_divisor.modulo(element) * program.matrix_bytes;
    }
    if (shown.streamed(place) != nullptr) [[unlikely]]
      shown.settle(place);
    return machine.mram.data() + element * program.matrix_bytes;
  }
  /// The whole tile that `element` lies in, transposed, where that is at hand; else null.
  [[nodiscard]] const std::uint8_t* mram_columns(std::uint64_t element) const {
    CachedTile* tile = shown.cached(program.tile_divisor.quotient(element));
    return tile != nullptr ? tile_cache->columns(*tile) : nullptr;
  }
  /// Whether the tile that `element` lies in is known to hold no infinity and no NaN.
  [[nodiscard]] bool mram_is_finite(std::uint64_t element) const {
    const CachedTile* tile = shown.cached(program.tile_divisor.quotient(element));
    return tile != nullptr && tile->finite;
  }
  /// The tile that `element` lies in as bytes of HBM, where a product of it costs least; else null.
  [[nodiscard]] StreamedTile* mram_bytes(std::uint64_t element) {
    StreamedTile* tile = shown.streamed(program.tile_divisor.quotient(element));
    // A tile that is used again is worth decoding.
    return tile != nullptr && tile->uses++ == 0 ? tile : nullptr;
  }

  /// A whole row of Vector SRAM: a multiple of VLEN, inside.
  void require_row(std::uint64_t address, const char* operand) {
    require_rows(address, 1, operand);
  }
  void require_rows(std::uint64_t address, std::uint64_t rows, const char* operand) {
    if (!program.vlen_divisor.divides(address) ||
        address + rows * program.vlen > program.vram_elements) [[unlikely]]
      explain_rows(address, rows, operand);
  }
  /// `rows` windows of MLEN lanes, VLEN apart: a multiple of MLEN, inside.
  void require_windows(std::uint64_t address, std::uint64_t rows, const char* operand) {
    if (!program.mlen_divisor.divides(address) ||
        address + (rows - 1) * program.vlen + program.mlen > program.vram_elements) [[unlikely]]
      explain_windows(address, rows, operand);
  }

 private:
  template <class Describe>
  [[gnu::cold]] [[gnu::noinline]] void describe_fault(TrapCause cause, const Describe& describe) {
    auto [values, rule] = describe();
    note_fault(cause, std::move(values), std::move(rule));
  }

  // What of the rules above is broken.
  [[gnu::cold]] void explain_rows(std::uint64_t address, std::uint64_t rows, const char* operand);
  [[gnu::cold]] void explain_windows(std::uint64_t address, std::uint64_t rows,
                                     const char* operand);
};

// Handlers, one file a class of instructions.
Handler matrix_handler(const Instruction& instruction, const Dialect& dialect);
Handler vector_handler(const Instruction& instruction, const Dialect& dialect);
Handler scalar_handler(const Instruction& instruction, ElementType scalar_format,
                       const Dialect& dialect);
Handler memory_handler(const Instruction& instruction, const Dialect& dialect);

// What the switches of the dialect plena-rs change; null where they change nothing.
Handler rs_matrix_handler(const Instruction& instruction, const Dialect& dialect);
Handler rs_vector_handler(const Instruction& instruction, const Dialect& dialect);
Handler rs_scalar_handler(const Instruction& instruction, const Dialect& dialect);
Handler rs_memory_handler(const Instruction& instruction, const Dialect& dialect);
Handler rs_control_handler(const Instruction& instruction, const Dialect& dialect);

/// A word that this dialect refuses only when it is reached (rs-decode).
bool illegal_when_reached(Execution& execution, const Prepared& instruction);

}  // namespace plena
