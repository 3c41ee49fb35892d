// plena port as a whole: loops, registers, the new program and the check of its addresses.
#include "plena/check/porter.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "plena/isa/encoding.h"

namespace plena {

namespace {

constexpr std::uint32_t kLongestTile = 1U << 16;  // MLEN² stays inside 32 bits below it

// rs-tile-address: M_MM's offset in its tile counts rows, the specification's columns.
AddressMap columns_from_rows(std::uint32_t mlen) {
  return [mlen](std::uint32_t number) -> std::optional<std::uint32_t> {
    const std::uint32_t offset = number % (mlen * mlen);
    if (offset % mlen != 0) return std::nullopt;
    return number - offset + offset / mlen;
  };
}

// rs-tile-address: M_BMM's offset is the row itself, the specification's counts elements.
AddressMap elements_from_row(std::uint32_t mlen) {
  return [mlen](std::uint32_t number) -> std::optional<std::uint32_t> {
    const std::uint32_t offset = number % (mlen * mlen);
    if (offset >= mlen) return std::nullopt;
    return number - offset + offset * mlen;
  };
}

}  // namespace

Porter::Porter(std::vector<Instruction> program, std::vector<bool> legal, const Settings& settings)
    : settings_(settings),
      program_(std::move(program)),
      legal_(std::move(legal)),
      facts_(gather_facts(program_, legal_, settings_for(settings, Dialect::plena_rs()))),
      flow_(program_),
      spare_(program_),
      columns_(program_, flow_, columns_from_rows(settings.mlen), uses(Op::M_MM, Field::Rs1)),
      rows_(program_, flow_, elements_from_row(settings.mlen), uses(Op::M_BMM, Field::Rs1)) {}

PortedProgram Porter::port(const std::vector<std::uint32_t>& words) {
  note_end();
  note_settings();
  close_loops();
  rename_address_registers();
  for (pc_ = 0; pc_ < program_.size(); ++pc_) {
    if (!facts_.at[pc_].reached) continue;
    visit(program_[pc_], words[pc_]);
  }
  set_registers_first();
  finish(words);
  check_recoded_addresses();
  std::stable_sort(ported_.findings.begin(), ported_.findings.end(),
                   [](const PortFinding& a, const PortFinding& b) { return a.pc < b.pc; });
  return std::move(ported_);
}

std::set<RegisterUse> Porter::uses(Op op, Field field) const {
  std::set<RegisterUse> found;
  for (std::uint64_t pc = 0; pc < program_.size(); ++pc) {
    if (program_[pc].op == op)
      found.insert({pc, static_cast<std::uint8_t>(field_value(program_[pc], field))});
  }
  return found;
}

void Porter::note_end() {
  pc_ = facts_.stop_pc;
  switch (facts_.end) {
    case RegisterWalk::End::Halted:
      return;
    case RegisterWalk::End::Running:
      if (pc_ < legal_.size() && !legal_[pc_]) {
        find(RsSwitch::Decode, NotRewritten, "the program traps here: the word is no instruction");
      } else {
        find(RsSwitch::Loops, Unknown,
             fmt::format("the program runs more than {} instructions; the rest was not looked at",
                         kLongestWalk));
      }
      return;
    case RegisterWalk::End::Faulted:
      find(RsSwitch::Loops, NotRewritten, "the program traps here: a loop rule is broken");
      return;
    case RegisterWalk::End::UnknownTripCount:
      find(RsSwitch::Loops, Unknown, "the loop's counter is not known; the rest was not looked at");
      return;
  }
}

void Porter::note_settings() {
  const Settings rounded = settings_for(settings_, Dialect::plena_rs());
  if (rounded.hbm_m_prefetch_amount != settings_.hbm_m_prefetch_amount) {
    ported_.notes.push_back(
        fmt::format("set HBM_M_Prefetch_Amount to {}: plena-rs rounds {} up to whole tiles",
                    rounded.hbm_m_prefetch_amount, settings_.hbm_m_prefetch_amount));
  }
  ported_.notes.emplace_back(
      "FP_MEM images of plena-rs hold binary16; those of the specification hold SCALAR_FP");
}

// rs-loops: a loop that is never closed only sets its register.
void Porter::close_loops() {
  std::vector<std::uint64_t> open;
  for (pc_ = 0; pc_ < program_.size(); ++pc_) {
    const Instruction& i = program_[pc_];
    if (i.op == Op::C_LOOP_START) {
      if (i.rd == 0) find(RsSwitch::Registers, NotRewritten, "gp0 counts a loop");
      open.push_back(pc_);
    } else if (i.op == Op::C_LOOP_END) {
      if (open.empty() || program_[open.back()].rd != i.rd) {
        find(RsSwitch::Loops, NotRewritten, "the loops cross, or the loop was never opened");
        return;
      }
      open.pop_back();
    }
  }
  for (const std::uint64_t start : open) {
    pc_ = start;
    edits_.replace(pc_, load_constant(program_[pc_].rd, program_[pc_].imm));
    find(RsSwitch::Loops, Rewritten, "the loop is never closed: it only sets its register");
  }
}

// rs-registers: a8 … a15 become spare ones of a0 … a7.
void Porter::rename_address_registers() {
  std::array<std::optional<std::uint8_t>, 16> renamed;
  for (pc_ = 0; pc_ < program_.size(); ++pc_) {
    for (const Operand& operand : row_of(program_[pc_].op).operands()) {
      const std::uint32_t a = field_value(program_[pc_], operand.field);
      if (operand.kind != OperandKind::Addr || a < 8) continue;
      if (!renamed[a]) renamed[a] = spare_.take_a();
      if (!renamed[a]) {
        find(RsSwitch::Registers, NotRewritten,
             fmt::format("a{} does not exist, no register "
                         "of a0 to a7 is spare",
                         a));
        continue;
      }
      Instruction i = current();
      set_field(i, operand.field, *renamed[a]);
      edits_.replace(pc_, {i});
      find(RsSwitch::Registers, Rewritten, fmt::format("a{} became a{}", a, *renamed[a]));
    }
  }
}

void Porter::set_registers_first() {
  std::vector<Instruction> first;
  if (sets_stride_first_) {
    if (const auto one = spare_.take_gp()) {
      first.push_back({.op = Op::S_ADDI_INT, .rd = *one, .imm = 1});
      first.push_back({.op = Op::C_SET_STRIDE_REG, .rd = *one});
    }
  }
  if (sets_scale_first_) first.push_back({.op = Op::C_SET_SCALE_REG});
  for (const std::uint8_t a : addresses_set_first_)
    first.push_back({.op = Op::C_SET_ADDR_REG, .rd = a});
  edits_.prologue(first);
}

void Porter::finish(const std::vector<std::uint32_t>& words) {
  auto applied = edits_.apply(program_);
  ported_.position = std::move(applied.position);
  new_program_ = std::move(applied.program);
  for (const Instruction& i : new_program_) {
    const Extension extension = row_of(i.op).extension;
    if (extension != Extension::Base) ported_.target.enable(extension);
    if (i.op == Op::M_MM_WO && i.rs1 != 0) ported_.target.enable(Extension::WoStride);
    ported_.words.push_back(encode(i));
  }
  // A word that is no instruction stays what it is.
  for (std::uint64_t pc = 0; pc < words.size(); ++pc) {
    if (!legal_[pc]) ported_.words[ported_.position[pc]] = words[pc];
  }
}

// Walks the old program and the new one and compares every address that was recoded.
void Porter::check_recoded_addresses() {
  if (recoded_.empty()) return;
  const std::vector<std::uint64_t> wanted = access_digests(program_, recoded_, true);
  std::vector<std::uint64_t> positions;
  positions.reserve(recoded_.size());
  for (const std::uint64_t pc : recoded_) positions.push_back(ported_.position[pc]);
  const std::vector<std::uint64_t> got = access_digests(new_program_, positions, false);
  for (std::size_t k = 0; k < recoded_.size(); ++k) {
    if (wanted[k] == got[k]) continue;
    pc_ = recoded_[k];
    find(RsSwitch::TileAddress, NotRewritten,
         "the address overflows its tile on the way, so that it could not be recoded");
  }
}

// For each of `pcs`, a digest of the tile addresses it sees in turn, in the specification's
// units: mapped where `map` says that the program counts in the dialect's.
std::vector<std::uint64_t> Porter::access_digests(std::span<const Instruction> program,
                                                  const std::vector<std::uint64_t>& pcs,
                                                  bool map) const {
  constexpr std::uint64_t kMix = 0x9E37'79B9'7F4A'7C15;
  std::vector<std::uint32_t> slot(program.size(), 0);  // index in pcs, plus 1
  for (std::size_t k = 0; k < pcs.size(); ++k) slot[pcs[k]] = static_cast<std::uint32_t>(k + 1);
  std::vector<std::uint64_t> digests(pcs.size(), 0);
  const AddressMap columns = columns_from_rows(settings_.mlen);
  const AddressMap rows = elements_from_row(settings_.mlen);
  RegisterWalk walk(program, map);
  // The new program is longer, but not by more than this.
  for (std::uint64_t steps = 0;
       walk.end() == RegisterWalk::End::Running && steps < 8 * kLongestWalk; ++steps) {
    if (const std::uint32_t k = slot[walk.pc()]; k != 0) {
      const Instruction& i = walk.instruction();
      const std::uint32_t address = walk.state().gp[i.rs1].value;
      const auto wanted = !map ? address : (i.op == Op::M_MM ? columns : rows)(address);
      digests[k - 1] = (digests[k - 1] ^ wanted.value_or(~0U)) * kMix + 1;
    }
    walk.step();
  }
  return digests;
}

std::string_view port_outcome_name(PortOutcome outcome) {
  constexpr std::array<std::string_view, 5> kNames = {"rewritten", "rounding", "data",
                                                      "not rewritten", "unknown"};
  return kNames[static_cast<std::size_t>(outcome)];
}

bool PortedProgram::has(PortOutcome outcome) const {
  return std::any_of(findings.begin(), findings.end(),
                     [&](const PortFinding& finding) { return finding.outcome == outcome; });
}

bool PortedProgram::equivalent() const {
  return !has(PortOutcome::NotRewritten) && !has(PortOutcome::Unknown);
}

Result<PortedProgram> port_program(const std::vector<std::uint32_t>& words,
                                   const Settings& settings) {
  if (settings.mlen == 0 || settings.mlen >= kLongestTile)
    return fail(ErrorCode::Settings, "MLEN = {} is no tile size", settings.mlen);
  const Dialect dialect = Dialect::plena_rs();
  std::vector<Instruction> program;
  std::vector<bool> legal;
  for (std::size_t pc = 0; pc < words.size(); ++pc) {
    const auto instruction = decode(words[pc], dialect);
    if (!instruction && refused_at_load(words[pc])) {
      return fail(ErrorCode::Trap, "word {}: {}", pc, explain_illegal(words[pc], dialect));
    }
    // C_BREAK stands in for a word that traps when it is reached.
    program.push_back(instruction.value_or(Instruction{.op = Op::C_BREAK}));
    legal.push_back(instruction.has_value());
  }
  return Porter(std::move(program), std::move(legal), settings).port(words);
}

}  // namespace plena
