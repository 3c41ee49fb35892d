// For the tests of the switches of the dialect plena-rs: a machine small enough for arithmetic on
// paper, with any switches on, and short ways to fill and read its memories.
#pragma once

#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "plena/numerics/float_format.h"
#include "plena/sim/engine.h"

namespace plena {

/// MLEN = VLEN 8, HLEN 4 (two heads), BLEN 2; bf16 SRAMs, 4 tiles, 32 rows; MXFP8 E4M3 blocks of 8.
inline Settings tiny_settings() {
  Settings settings;
  settings.mlen = settings.vlen = 8;
  settings.hlen = 4;
  settings.blen = 2;
  settings.matrix_sram_size = 32;
  settings.vector_sram_size = 32;
  settings.hbm_size = 4096;
  settings.hbm_m_prefetch_amount = 8;
  settings.hbm_v_prefetch_amount = 2;
  settings.hbm_v_writeback_amount = 2;
  settings.int_sram_depth = settings.fp_sram_depth = 64;
  return settings;
}

inline constexpr std::uint64_t kTile = 64;  // elements

/// A machine of `isa` and the words to run on it.
class RsBench {
 public:
  explicit RsBench(std::string_view isa, const Settings& settings = tiny_settings())
      : machine(std::move(*Machine::create(settings, *Dialect::parse(isa)))) {}

  RsBench& gp(std::uint8_t index, std::uint32_t value) {
    machine.gp[index] = value;
    return *this;
  }
  RsBench& f(std::uint8_t index, float value) {
    machine.f[index] = encode_fp(machine.scalar_element(), value);
    return *this;
  }
  RsBench& mask(std::uint32_t bits) {
    machine.v_mask = bits;
    return *this;
  }
  RsBench& row(std::uint64_t address, const std::vector<float>& values) {
    for (std::size_t lane = 0; lane < values.size(); ++lane) {
      const auto bits = f32_to_bf16(values[lane]);
      std::memcpy(machine.vram.writable((address + lane) * 2, 2), &bits, 2);
    }
    return *this;
  }
  RsBench& hbm(std::uint64_t address, const std::vector<std::uint8_t>& bytes) {
    std::memcpy(machine.hbm.writable(address, bytes.size()), bytes.data(), bytes.size());
    return *this;
  }
  /// Element (r, c) of tile 0 becomes value(r, c).
  template <class Value>
  RsBench& tile(Value value) {
    for (std::uint64_t r = 0; r < machine.settings.mlen; ++r) {
      for (std::uint64_t c = 0; c < machine.settings.mlen; ++c)
        set_matrix(r * machine.settings.mlen + c, value(r, c));
    }
    return *this;
  }

  Stop run(const std::vector<Instruction>& program) {
    std::vector<std::uint32_t> words;
    for (const Instruction& instruction : program) words.push_back(encode(instruction));
    return run_words(words);
  }
  Stop run_words(const std::vector<std::uint32_t>& words) {
    auto prepared = prepare(words, machine.settings, machine.dialect);
    if (!prepared) return {StopReason::Trapped, prepared.error()};
    machine.pc = 0;
    return plena::run(machine, **prepared);
  }

  [[nodiscard]] std::uint16_t bits(std::uint64_t address) const {
    std::uint16_t out = 0;
    std::memcpy(&out, machine.vram.data() + address * 2, 2);
    return out;
  }
  [[nodiscard]] float lane(std::uint64_t address) const { return bf16_to_f32(bits(address)); }
  [[nodiscard]] std::vector<float> lanes(std::uint64_t address, std::size_t count = 8) const {
    std::vector<float> out;
    for (std::size_t k = 0; k < count; ++k) out.push_back(lane(address + k));
    return out;
  }
  [[nodiscard]] float f(std::uint8_t index) const {
    return decode_fp(machine.scalar_element(), machine.f[index]);
  }
  [[nodiscard]] float matrix(std::uint64_t element) const {
    const ElementType format = machine.matrix_element();
    std::uint32_t bits = 0;
    const std::size_t unit = storage_bytes(format);
    std::memcpy(&bits, machine.mram.data() + element * unit, unit);
    return decode_fp(format, bits);
  }

  Machine machine;

 private:
  void set_matrix(std::uint64_t element, float value) {
    const ElementType format = machine.matrix_element();
    const std::uint32_t bits = encode_fp(format, value);
    const std::size_t unit = storage_bytes(format);
    std::memcpy(machine.mram.writable(element * unit, unit), &bits, unit);
  }
};

inline void expect_trap(const Stop& stop, TrapCause cause, std::uint64_t pc) {
  ASSERT_EQ(stop.reason, StopReason::Trapped);
  EXPECT_EQ(trap_name(stop.trap->cause), trap_name(cause));
  EXPECT_EQ(stop.trap->pc, pc);
}

inline Instruction addi(std::uint8_t rd, std::uint8_t rs1, std::uint32_t imm) {
  return {.op = Op::S_ADDI_INT, .rd = rd, .rs1 = rs1, .imm = imm};
}
inline Instruction loop_start(std::uint8_t rd, std::uint32_t n) {
  return {.op = Op::C_LOOP_START, .rd = rd, .imm = n};
}
inline Instruction loop_end(std::uint8_t rd) {
  return {.op = Op::C_LOOP_END, .rd = rd};
}

}  // namespace plena
