#include "plena/compiler/access.h"

#include "plena/timing/profile.h"

namespace plena {

namespace {

constexpr std::uint64_t kAddresses = std::uint64_t{1} << 32;

class Accesses {
 public:
  Accesses(const Instruction& instruction, const GpOperands& gp, const Settings& settings)
      : i_(instruction), gp_(gp), s_(settings) {}

  std::vector<MemoryAccess> all() {
    switch (row_of(i_.op).instruction_class) {
      case InstructionClass::Matrix:
        matrix();
        break;
      case InstructionClass::Vector:
        vector();
        break;
      case InstructionClass::Scalar:
        scalar();
        break;
      case InstructionClass::Memory:
        transfer();
        break;
      case InstructionClass::Control:
        break;
    }
    return std::move(out_);
  }

 private:
  void add(Memory memory, bool write, Affine first, std::uint64_t lanes, std::uint64_t rows = 1) {
    out_.push_back({.memory = memory,
                    .write = write,
                    .first = first,
                    .lanes = lanes,
                    .rows = rows,
                    .step = s_.vlen});
  }
  void read_rows(Affine first, std::uint64_t rows) {
    add(Memory::Vram, false, first, s_.mlen, rows);
  }
  void read_tile(Affine address) {
    // Computes with a part of a tile name an element within it.
    const std::uint64_t tile = std::uint64_t{s_.mlen} * s_.mlen;
    if (i_.op == Op::M_MV || i_.op == Op::M_TMV) return add(Memory::Mram, false, address, tile);
    if (address.is_constant()) {
      address.offset -= static_cast<std::uint32_t>(address.offset % tile);
      return add(Memory::Mram, false, address, tile);
    }
    add(Memory::Mram, false, address.plus(1U - static_cast<std::uint32_t>(tile)), 2 * tile - 1);
  }

  void matrix() {
    const Affine to = gp_.rd.plus(i_.imm);
    switch (i_.op) {
      case Op::M_MM:
        read_rows(gp_.rs2, s_.blen);
        return read_tile(gp_.rs1);
      case Op::M_TMM:
        read_rows(gp_.rs1, s_.blen);
        return read_tile(gp_.rs2);
      case Op::M_BMM:
      case Op::M_BTMM:
        read_rows(gp_.rs2, s_.mlen);
        return read_tile(gp_.rs1);
      case Op::M_BMV:
      case Op::M_BTMV:
        read_rows(gp_.rs2, 1);
        return anywhere(Memory::Mram, false);
      case Op::M_MV:
      case Op::M_TMV:
        read_rows(gp_.rs1, 1);
        return read_tile(gp_.rs2);
      case Op::M_MM_WO:
        if (i_.rs1 != 0) return anywhere(Memory::Vram, true);
        return add(Memory::Vram, true, to, s_.blen, s_.blen);
      case Op::M_BMM_WO:
        return add(Memory::Vram, true, to, s_.mlen, std::uint64_t{s_.heads()} * s_.mlen);
      case Op::M_MV_WO:
        return add(Memory::Vram, true, to, s_.mlen);
      default:  // M_BMV_WO
        return add(Memory::Vram, true, to, s_.mlen, s_.heads());
    }
  }

  void vector() {
    if (i_.op == Op::V_TOPK) {
      const std::uint64_t rows = (top_k_lanes(i_.select) + s_.vlen - 1) / s_.vlen;
      add(Memory::Vram, false, gp_.rs1, s_.vlen, rows);
      add(Memory::Int, true, gp_.rs2, top_k_picks(i_.select));
      return add(Memory::Fp, true, gp_.rd, top_k_picks(i_.select));
    }
    add(Memory::Vram, false, gp_.rs1, s_.vlen);
    if (i_.op == Op::V_ADD_VV || i_.op == Op::V_SUB_VV || i_.op == Op::V_MUL_VV) {
      add(Memory::Vram, false, gp_.rs2, s_.vlen);
    }
    if (i_.op != Op::V_RED_SUM && i_.op != Op::V_RED_MAX) {
      add(Memory::Vram, true, gp_.rd, s_.vlen);
    }
  }

  void scalar() {
    const Affine entry = gp_.rs1.plus(i_.imm);
    switch (i_.op) {
      case Op::S_LD_FP:
      case Op::S_ST_FP:
        return add(Memory::Fp, i_.op == Op::S_ST_FP, entry, 1);
      case Op::S_LD_INT:
      case Op::S_ST_INT:
        return add(Memory::Int, i_.op == Op::S_ST_INT, entry, 1);
      case Op::S_MAP_V_FP:
        add(Memory::Fp, false, entry, s_.vlen);
        return add(Memory::Vram, true, gp_.rd, s_.vlen);
      default:
        return;
    }
  }

  void transfer() {
    const bool store = i_.op == Op::H_STORE_V;
    out_.push_back({.memory = Memory::Hbm, .write = store, .base = i_.rs2});
    if (i_.op == Op::H_PREFETCH_M) {
      return add(Memory::Mram, true, gp_.rd, std::uint64_t{s_.hbm_m_prefetch_amount} * s_.mlen);
    }
    const std::uint64_t rows = store ? s_.hbm_v_writeback_amount : s_.hbm_v_prefetch_amount;
    add(Memory::Vram, !store, gp_.rd, s_.vlen, rows);
  }

  void anywhere(Memory memory, bool write) {
    out_.push_back({.memory = memory, .write = write, .anywhere = true});
  }

  const Instruction& i_;
  const GpOperands& gp_;
  const Settings& s_;
  std::vector<MemoryAccess> out_;
};

std::uint64_t span(const MemoryAccess& a) {
  return (a.rows - 1) * a.step + a.lanes;
}

// Whether two accesses use different lanes of their rows; `apart` is the distance of their firsts.
bool lanes_differ(const MemoryAccess& a, const MemoryAccess& b, std::uint64_t apart) {
  if (a.step == 0 || a.step != b.step || kAddresses % a.step != 0) return false;
  const std::uint64_t lane = apart % a.step;
  return lane >= a.lanes && lane + b.lanes <= a.step;
}

}  // namespace

std::vector<MemoryAccess> accesses_of(const Instruction& instruction, const GpOperands& gp,
                                      const Settings& settings) {
  return Accesses(instruction, gp, settings).all();
}

Meeting meeting(const MemoryAccess& a, const MemoryAccess& b, bool bases_apart) {
  if (a.memory != b.memory) return Meeting::Never;
  if (a.memory == Memory::Hbm) {
    return bases_apart && a.base != b.base ? Meeting::Never : Meeting::Perhaps;
  }
  if (a.anywhere || b.anywhere || a.first.symbol != b.first.symbol) return Meeting::Perhaps;
  const std::uint64_t apart = std::uint32_t{b.first.offset - a.first.offset};
  if (apart >= span(a) && kAddresses - apart >= span(b)) return Meeting::Never;
  return lanes_differ(a, b, apart) ? Meeting::Never : Meeting::Surely;
}

}  // namespace plena
