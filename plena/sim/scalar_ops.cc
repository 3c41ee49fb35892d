// Scalar instructions that are more than one line: floating point, and everything that touches
// INT_MEM, FP_MEM or a row of Vector SRAM. Integer arithmetic lives in the dispatch loop.
#include <cstring>

#include <fmt/format.h>

#include "plena/numerics/float_format.h"
#include "plena/sim/prepared.h"

namespace plena {

namespace {

// Decoding and encoding of scalars, resolved when a program is prepared.
struct Bf16Scalar {
  static float decode(const Execution& /*x*/, std::uint32_t bits) {
    return bf16_to_f32(static_cast<std::uint16_t>(bits));
  }
  static std::uint32_t encode(const Execution& /*x*/, float value) { return f32_to_bf16(value); }
};
struct AnyScalar {
  static float decode(const Execution& x, std::uint32_t bits) {
    return decode_fp(x.program.scalar_format, bits);
  }
  static std::uint32_t encode(const Execution& x, float value) {
    return encode_fp(x.program.scalar_format, value);
  }
};

enum class Arithmetic : std::uint8_t { Add, Subtract, Multiply, Maximum };

template <class Scalar, Arithmetic kOperation>
bool arithmetic(Execution& x, const Prepared& i) {
  if (i.rd == 0) return true;
  const float a = Scalar::decode(x, x.machine.f[i.rs1]);
  const float b = Scalar::decode(x, x.machine.f[i.rs2]);
  float result = 0;
  switch (kOperation) {
    case Arithmetic::Add:
      result = a + b;
      break;
    case Arithmetic::Subtract:
      result = a - b;
      break;
    case Arithmetic::Multiply:
      result = a * b;
      break;
    case Arithmetic::Maximum:
      result = maximum_number(a, b);
      break;
  }
  x.machine.f[i.rd] = Scalar::encode(x, result);
  return true;
}

template <std::uint32_t (*kFunction)(ElementType, std::uint32_t)>
bool elementary(Execution& x, const Prepared& i) {
  if (i.rd != 0) x.machine.f[i.rd] = kFunction(x.program.scalar_format, x.machine.f[i.rs1]);
  return true;
}

// gp + imm does not wrap: beyond 2^32 is out of range (semantics 6.14); under rs-decode it does.
template <bool kRs>
std::uint64_t entry_address(const Execution& x, const Prepared& i) {
  const std::uint64_t sum = std::uint64_t{x.gp(i.rs1)} + i.imm;
  if (kRs && x.program.dialect.has(RsSwitch::Decode)) return static_cast<std::uint32_t>(sum);
  return sum;
}

// Writes to gp0 and f0 vanish, but not those of loads under rs-registers.
template <bool kRs>
bool keeps(const Execution& x, std::uint8_t register_index) {
  return register_index != 0 || (kRs && x.program.dialect.has(RsSwitch::Registers));
}

void require_entries(Execution& x, std::uint64_t address, std::uint64_t count,
                     const std::vector<std::uint32_t>& memory, const char* name) {
  x.require(address + count <= memory.size(), TrapCause::AddressOutOfRange, [&] {
    return std::pair(fmt::format("address gp<rs1> + imm = {}, {} entries", address, count),
                     fmt::format("{} has {} entries (semantics 6.15)", name, memory.size()));
  });
}

template <bool kRs>
bool load_fp(Execution& x, const Prepared& i) {
  const std::uint64_t address = entry_address<kRs>(x, i);
  require_entries(x, address, 1, x.machine.fp_mem, "FP_MEM");
  if (x.faulted) return false;
  if (keeps<kRs>(x, i.rd)) x.machine.f[i.rd] = x.machine.fp_mem[address];
  return true;
}

template <bool kRs>
bool store_fp(Execution& x, const Prepared& i) {
  const std::uint64_t address = entry_address<kRs>(x, i);
  require_entries(x, address, 1, x.machine.fp_mem, "FP_MEM");
  if (x.faulted) return false;
  x.machine.fp_mem[address] = x.machine.f[i.rd];
  return true;
}

template <bool kRs>
bool load_int(Execution& x, const Prepared& i) {
  const std::uint64_t address = entry_address<kRs>(x, i);
  require_entries(x, address, 1, x.machine.int_mem, "INT_MEM");
  if (x.faulted) return false;
  if (keeps<kRs>(x, i.rd)) x.machine.gp[i.rd] = x.machine.int_mem[address];
  return true;
}

template <bool kRs>
bool store_int(Execution& x, const Prepared& i) {
  const std::uint64_t address = entry_address<kRs>(x, i);
  require_entries(x, address, 1, x.machine.int_mem, "INT_MEM");
  if (x.faulted) return false;
  x.machine.int_mem[address] = x.gp(i.rd);
  return true;
}

template <class Element>
void copy_lanes(const Execution& x, const std::uint32_t* from, std::uint8_t* to) {
  for (std::uint32_t lane = 0; lane < x.program.vlen; ++lane) {
    const auto bits = static_cast<Element>(
        convert_fp(x.program.scalar_format, x.program.vector_format, from[lane]));
    std::memcpy(to + lane * sizeof(Element), &bits, sizeof(Element));
  }
}

template <bool kRs>
bool map_row(Execution& x, const Prepared& i) {
  const std::uint64_t address = entry_address<kRs>(x, i);
  const std::uint64_t rd = x.gp(i.rd);
  require_entries(x, address, x.program.vlen, x.machine.fp_mem, "FP_MEM");
  x.require_row(rd, "gp<rd>");
  if (x.faulted) return false;
  std::uint8_t* row = x.writable_vram(rd, x.program.vlen);
  const std::uint32_t* from = x.machine.fp_mem.data() + address;
  x.program.vector_bytes == sizeof(std::uint16_t) ? copy_lanes<std::uint16_t>(x, from, row)
                                                  : copy_lanes<std::uint32_t>(x, from, row);
  return true;
}

template <class Scalar>
Handler floating_point_handler(Op op) {
  switch (op) {
    case Op::S_ADD_FP:
      return arithmetic<Scalar, Arithmetic::Add>;
    case Op::S_SUB_FP:
      return arithmetic<Scalar, Arithmetic::Subtract>;
    case Op::S_MUL_FP:
      return arithmetic<Scalar, Arithmetic::Multiply>;
    case Op::S_MAX_FP:
      return arithmetic<Scalar, Arithmetic::Maximum>;
    default:
      return nullptr;
  }
}

template <bool kRs>
Handler transfer_handler(Op op) {
  switch (op) {
    case Op::S_LD_FP:
      return load_fp<kRs>;
    case Op::S_ST_FP:
      return store_fp<kRs>;
    case Op::S_LD_INT:
      return load_int<kRs>;
    case Op::S_ST_INT:
      return store_int<kRs>;
    case Op::S_MAP_V_FP:
      return map_row<kRs>;
    default:
      return nullptr;
  }
}

}  // namespace

Handler scalar_handler(const Instruction& instruction, ElementType scalar_format,
                       const Dialect& dialect) {
  const Op op = instruction.op;
  if (Handler rs = rs_scalar_handler(instruction, dialect)) return rs;
  if (Handler transfer =
          dialect.any_switch() ? transfer_handler<true>(op) : transfer_handler<false>(op)) {
    return transfer;
  }
  switch (op) {
    case Op::S_EXP_FP:
      return elementary<exp_fp>;
    case Op::S_RECI_FP:
      return elementary<reciprocal_fp>;
    case Op::S_SQRT_FP:
      return elementary<sqrt_fp>;
    default:
      return scalar_format == kBf16 ? floating_point_handler<Bf16Scalar>(op)
                                    : floating_point_handler<AnyScalar>(op);
  }
}

}  // namespace plena
