#include "plena/cases/emulator_run.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "plena/asm/mem_file.h"
#include "plena/numerics/float_format.h"
#include "plena/sim/observer_watch.h"

namespace plena {

namespace {

constexpr std::uint64_t kHbmBlock = 64;  // bytes; statistics count whole ones

std::uint64_t block_bytes(std::uint64_t address, std::uint64_t bytes) {
  if (bytes == 0) return 0;
  return ((address + bytes - 1) / kHbmBlock - address / kHbmBlock + 1) * kHbmBlock;
}

std::uint64_t setting(const Settings& settings, std::string_view name) {
  const auto found = settings.latency.find(name);
  return found == settings.latency.end() ? 0 : found->second;
}

// Counts what the emulator reports, from the cost of each word of the program.
class Meter final : public Observer {
 public:
  Meter(const std::vector<Instruction>& program, const Settings& settings,
        const EmulatorOptions& options)
      : next_(options.observer), memory_time_(options.memory_time) {
    for (const Instruction& i : program) {
      const bool transfers = row_of(i.op).instruction_class == InstructionClass::Memory;
      costs_.push_back({emulator_cycles(i, settings), transfers && memory_time_});
    }
  }

  void about_to_run(const Machine& machine, std::uint64_t pc, const Instruction& i) override {
    if (next_ != nullptr) next_->about_to_run(machine, pc, i);
  }
  void retired(const Machine& machine, std::uint64_t pc, const Instruction& i) override {
    if (costs_[pc].asks_memory) [[unlikely]] {
      latency = memory_time_(machine, i, latency);
    } else {
      latency += costs_[pc].cycles;
    }
    if (next_ != nullptr) next_->retired(machine, pc, i);
  }
  void moved_row(const HbmRow& row) override {
    const EmulatorTraffic traffic = emulator_traffic(row);
    read += traffic.read;
    written += traffic.written;
    if (next_ != nullptr) next_->moved_row(row);
  }

  std::uint64_t latency = 0;
  std::uint64_t read = 0;
  std::uint64_t written = 0;

 private:
  struct Cost {
    std::uint64_t cycles = 0;
    bool asks_memory = false;
  };

  std::vector<Cost> costs_;  // by pc
  Observer* next_;
  const MemoryTime& memory_time_;
};

Status load_fp_image(std::span<const std::uint8_t> image, Machine& machine) {
  const std::size_t entries = image.size() / sizeof(std::uint16_t);
  if (image.size() % sizeof(std::uint16_t) != 0 || entries > machine.fp_mem.size()) {
    return fail(ErrorCode::Format,
                "the FP image has {} bytes, but FP_MEM takes whole binary16 values, at most {}",
                image.size(), machine.fp_mem.size());
  }
  for (std::size_t k = 0; k < entries; ++k) {
    std::uint16_t half = 0;
    std::memcpy(&half, image.data() + k * sizeof half, sizeof half);
    machine.fp_mem[k] = convert_fp(kFp16, machine.scalar_element(), half);
  }
  return {};
}

Status load_int_image(std::span<const std::uint8_t> image, Machine& machine) {
  const std::size_t entries = image.size() / sizeof(std::uint32_t);
  if (image.size() % sizeof(std::uint32_t) != 0 || entries > machine.int_mem.size()) {
    return fail(
        ErrorCode::Format,
        "the integer image has {} bytes, but INT_MEM takes whole 32-bit integers, at most {}",
        image.size(), machine.int_mem.size());
  }
  if (!image.empty()) std::memcpy(machine.int_mem.data(), image.data(), image.size());
  return {};
}

Status load_images(const EmulatorInputs& inputs, Machine& machine) {
  if (auto loaded = machine.write_elements(MemoryKind::Hbm, 0, inputs.hbm); !loaded) {
    return fail_with_hint(ErrorCode::Format,
                          fmt::format("the HBM image has {} bytes, but HBM only {}",
                                      inputs.hbm.size(), machine.hbm.size()),
                          "--hbm-size sets the size of HBM");
  }
  if (auto loaded = load_fp_image(inputs.fp_sram, machine); !loaded) return loaded;
  if (auto loaded = load_int_image(inputs.int_sram, machine); !loaded) return loaded;
  return machine.write_elements(MemoryKind::Vram, 0, inputs.vram);
}

}  // namespace

EmulatorTraffic emulator_traffic(const HbmRow& row) {
  const std::uint64_t moved = block_bytes(row.element_address, row.element_bytes) +
                              block_bytes(row.scale_address, row.scale_bytes);
  return {moved, row.write ? moved : 0};
}

std::uint64_t emulator_cycles(const Instruction& i, const Settings& s) {
  // Arithmetic and reductions into f0 are no-ops there.
  const InstructionRow& row = row_of(i.op);
  const bool into_f0 = row.operand_count > 0 && row.operands()[0].kind == OperandKind::Fp &&
                       row.operands()[0].access != Access::Read && i.rd == 0 && i.op != Op::S_LD_FP;
  if (into_f0) return 0;
  switch (i.op) {
    case Op::M_MM:
    case Op::M_TMM:
    case Op::M_BMM:
    case Op::M_BTMM:
      return setting(s, "SYSTOLIC_PROCESSING_OVERHEAD") + s.mlen;
    case Op::M_BMV:
    case Op::M_BTMV:
      return setting(s, "SYSTOLIC_PROCESSING_OVERHEAD") + 1;
    case Op::M_MV:
    case Op::M_TMV:
      return s.mlen;
    case Op::V_ADD_VV:
    case Op::V_ADD_VF:
    case Op::V_SUB_VV:
    case Op::V_SUB_VF:
      return setting(s, "VECTOR_ADD_CYCLES");
    case Op::V_MUL_VV:
    case Op::V_MUL_VF:
    case Op::V_SHFT_V:
      return setting(s, "VECTOR_MUL_CYCLES");
    case Op::V_EXP_V:
      return setting(s, "VECTOR_EXP_CYCLES");
    case Op::V_RECI_V:
      return setting(s, "VECTOR_RECI_CYCLES");
    case Op::V_MAX_VF:
    case Op::V_MIN_VF:
    case Op::V_RED_MAX:
      return setting(s, "VECTOR_MAX_CYCLES");
    case Op::V_RED_SUM:
      return setting(s, "VECTOR_SUM_CYCLES");
    case Op::V_TOPK:
      return setting(s, "VECTOR_MAX_CYCLES") * (i.select == 0 ? 32 : 128);
    case Op::S_ADD_FP:
    case Op::S_SUB_FP:
    case Op::S_MUL_FP:
    case Op::S_MAX_FP:
      return setting(s, "SCALAR_FP_BASIC_CYCLES");
    case Op::S_EXP_FP:
      return setting(s, "SCALAR_FP_EXP_CYCLES");
    case Op::S_RECI_FP:
      return setting(s, "SCALAR_FP_RECI_CYCLES");
    case Op::S_SQRT_FP:
      return setting(s, "SCALAR_FP_SQRT_CYCLES");
    case Op::S_MAP_V_FP:
      return 2ULL * s.vlen;
    case Op::S_ADD_INT:
    case Op::S_ADDI_INT:
    case Op::S_SUB_INT:
    case Op::S_MUL_INT:
    case Op::S_LUI_INT:
    case Op::S_LD_INT:
    case Op::S_ST_INT:
      return setting(s, "SCALAR_INT_BASIC_CYCLES");
    case Op::H_PREFETCH_M:
    case Op::H_PREFETCH_V:
    case Op::H_STORE_V:
      return 0;
    default:
      return 1;  // write-outs, S_LD_FP, S_ST_FP, C-type
  }
}

namespace {

// The emulator strips a lower-case 0x only and stops at any other (dialect-plena-rs.md 0).
std::optional<Trap> refused_token(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  std::size_t index = 0;
  for (std::size_t at = text.find_first_not_of(kSpace); at != std::string_view::npos; ++index) {
    const std::size_t end = std::min(text.find_first_of(kSpace, at), text.size());
    const std::string_view token = text.substr(at, end - at);
    if (token.starts_with("0X")) {
      return Trap{TrapCause::IllegalInstruction, index, fmt::format("word '{}'", token),
                  "this dialect reads a lower-case 0x only (dialect-plena-rs.md 0)"};
    }
    at = text.find_first_not_of(kSpace, end);
  }
  return std::nullopt;
}

void execute(EmulatorRun& result, const std::vector<std::uint32_t>& words,
             const EmulatorOptions& options) {
  const Machine& machine = result.machine;
  auto program = prepare(words, machine.settings, machine.dialect, options.host.simd);
  if (!program) {
    result.trap = std::move(program).error();
    return;
  }
  Meter meter(instructions(**program), machine.settings, options);
  const RunOptions run_options{
      .observer = &meter, .interrupted = options.interrupted, .workers = options.host.workers};
  Execution x(result.machine, **program, run_options);
  Stop stop = dispatch(x, run_options, ObserverWatch<Meter>(x, run_options, &meter));
  result.trap = std::move(stop.trap);
  result.interrupted = stop.reason == StopReason::Interrupted;
  result.latency = meter.latency;
  result.hbm_read = meter.read;
  result.hbm_written = meter.written;
}

}  // namespace

Result<EmulatorProgram> emulator_program(std::string_view text, const std::string& name) {
  auto words = parse_mem(text, name);
  if (!words) return forward_error(words);
  return EmulatorProgram{{.words = std::move(*words), .source_name = name}, refused_token(text)};
}

Result<EmulatorRun> run_emulator(const EmulatorInputs& inputs, const EmulatorOptions& options) {
  auto machine = Machine::create(inputs.settings, Dialect::plena_rs());
  if (!machine) return forward_error(machine);
  EmulatorRun result{.machine = std::move(*machine)};
  if (auto loaded = load_images(inputs, result.machine); !loaded)
    return tl::unexpected(loaded.error());
  result.trap = inputs.program->refused;
  if (!result.trap) execute(result, inputs.program->program.words, options);
  return result;
}

}  // namespace plena
