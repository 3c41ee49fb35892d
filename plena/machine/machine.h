// The architectural state of one PLENA machine (semantics 3): registers, memories and the array.
// Plain data: it can be cloned, compared and looked at. What instructions do to it is sim/'s.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "plena/base/error.h"
#include "plena/config/settings.h"
#include "plena/isa/dialect.h"
#include "plena/machine/sparse_memory.h"

namespace plena {

/// What the accumulators of the array hold. `Clear` is the state after reset and a write-out.
enum class ArrayShape : std::uint8_t {
  Clear,
  Block,     // BLEN x BLEN
  Heads,     // H x MLEN x MLEN
  Row,       // MLEN
  HeadRows,  // H x MLEN (extension bmv)
  BlockRow,  // BLEN (dialect switch rs-mv)
};
std::string_view array_shape_name(ArrayShape shape);

/// The five memories, as --load, --dump and the test cases name them.
enum class MemoryKind : std::uint8_t { Vram, Mram, FpMem, IntMem, Hbm };

/// The array: f32 accumulators of one shape at a time, or, under rs-accumulators, of each shape.
struct SystolicArray {
  ArrayShape shape = ArrayShape::Clear;
  std::vector<float> block;      // [BLEN][BLEN]
  std::vector<float> heads;      // [H][MLEN][MLEN], allocated at first use
  std::vector<float> row;        // [MLEN]
  std::vector<float> head_rows;  // [H][MLEN]
  std::vector<float> block_row;  // [BLEN]

  friend bool operator==(const SystolicArray&, const SystolicArray&) = default;
};

/// A hardware loop that is running: for MAX_LOOP_INSTRUCTIONS, and under rs-loops for its end.
struct LoopFrame {
  std::uint32_t start = 0;         // index of its C_LOOP_START
  std::uint8_t counter = 0;        // gp register that counts it
  std::uint64_t instructions = 0;  // dynamic instructions of the current iteration so far

  friend bool operator==(const LoopFrame&, const LoopFrame&) = default;
};

/// Bytes an element takes in a state file: 1, 2 or 4 by the width of its format.
std::size_t state_file_bytes(ElementType element);

/// The settings a machine of this dialect works with: under rs-hbm-bytes H_PREFETCH_M's amount is
/// raised to a tile and rounded up to whole ones. Anything else stays, right or wrong.
Settings settings_for(Settings settings, const Dialect& dialect);

struct Machine {
  Settings settings;
  Dialect dialect;

  std::array<std::uint32_t, 16> gp{};
  std::array<std::uint32_t, 8> f{};   // bit patterns of SCALAR_FP
  std::array<std::uint64_t, 16> a{};  // byte addresses; a8 … a15 only under rs-registers
  std::uint32_t scale = 0;            // SCALE_REG, bytes
  std::uint32_t stride = 0;           // STRIDE_REG, elements
  std::uint32_t v_mask = 0;           // V_MASK
  std::uint16_t a_set = 0;            // bit i: a<i> was set at least once
  bool scale_set = false;
  bool stride_set = false;

  std::vector<std::uint32_t> int_mem;  // INT_MEM
  std::vector<std::uint32_t> fp_mem;   // FP_MEM, bit patterns of SCALAR_FP
  SparseMemory vram;                   // rows of VLEN elements of vector_element(), row-major
  SparseMemory mram;                   // tiles of MLEN x MLEN elements of matrix_element()
  SparseMemory hbm;                    // bytes
  SystolicArray array;

  std::uint64_t pc = 0;       // index of the next instruction
  std::uint64_t retired = 0;  // instructions completed
  std::vector<LoopFrame>
      loops;  // open loops, innermost last; kept only where something counts them

  /// A machine at reset. Settings are made settings_for() the dialect and check()ed; nothing is
  /// allocated for memories until touched.
  static Result<Machine> create(const Settings& settings, const Dialect& dialect = {});

  [[nodiscard]] Result<Machine> clone() const;

  /// Formats the SRAMs are kept in. Under rs-mx Matrix SRAM keeps f32, whatever its type.
  [[nodiscard]] ElementType vector_element() const { return settings.vector_sram_type.element; }
  [[nodiscard]] ElementType matrix_element() const {
    return dialect.has(RsSwitch::Mx) ? kFp32 : settings.matrix_sram_type.element;
  }
  /// Under rs-memories scalars are always bf16.
  [[nodiscard]] ElementType scalar_element() const {
    return dialect.has(RsSwitch::Memories) ? kBf16 : settings.scalar_fp.element;
  }

  [[nodiscard]] std::uint64_t vram_elements() const {
    return settings.vector_sram_size * settings.vlen;
  }
  [[nodiscard]] std::uint64_t mram_elements() const {
    return settings.matrix_sram_size * settings.mlen;
  }

  /// Elements of a memory (bytes of HBM) and bytes one takes in a state file: HBM 1, INT_MEM 4, the
  /// others 1, 2 or 4 by the width of their format (oracle/README.md, case format).
  [[nodiscard]] std::uint64_t element_count(MemoryKind kind) const;
  [[nodiscard]] std::size_t file_element_bytes(MemoryKind kind) const;

  /// Copies elements `first` … to and from little-endian state-file bytes. A range that leaves the
  /// memory is an error and changes nothing.
  Status write_elements(MemoryKind kind, std::uint64_t first, std::span<const std::uint8_t> bytes);
  [[nodiscard]] Result<std::vector<std::uint8_t>> read_elements(MemoryKind kind,
                                                                std::uint64_t first,
                                                                std::uint64_t count) const;
};

/// `vram mram fp int hbm` and the case format's `fp_mem int_mem`, or nothing.
std::optional<MemoryKind> parse_memory_kind(std::string_view name);
std::string_view memory_name(MemoryKind kind);

}  // namespace plena
