// Ported programs leave the memories of the originals. The order of sums is no part of that: the
// originals run under plena-rs without rs-sum-order.
#include "plena/check/port.h"

#include <algorithm>
#include <filesystem>

#include <gmock/gmock.h>

#include "plena/base/shared_data.h"
#include "plena/cases/bundle.h"
#include "plena/cases/emulator_dump.h"
#include "plena/sim/rs_fixture.h"

namespace plena {
namespace {

using testing::Contains;
using testing::Field;
using testing::HasSubstr;

constexpr std::string_view kSwitchesOfValues = "+rs-exp-clamp+rs-max+rs-topk";
constexpr std::string_view kOtherSwitches =
    "plena+shift+minmax+moe+bmv+wostride+rs-decode+rs-registers+rs-tile-address+rs-mv+rs-bmm-scale"
    "+rs-bmm-lanes+rs-accumulators+rs-mask-merge+rs-sub-order+rs-break+rs-loops+rs-mx"
    "+rs-hbm-bytes+rs-memories";

Dialect without_sum_order() {
  return *Dialect::parse(std::string(kOtherSwitches) + std::string(kSwitchesOfValues));
}

std::vector<std::uint32_t> encoded(const std::vector<Instruction>& program) {
  std::vector<std::uint32_t> words;
  for (const Instruction& instruction : program) words.push_back(encode(instruction));
  return words;
}

PortedProgram port(const std::vector<Instruction>& program,
                   const Settings& settings = tiny_settings()) {
  auto ported = port_program(encoded(program), settings);
  EXPECT_TRUE(ported.has_value());
  return std::move(*ported);
}

// Runs both programs from the same memories and compares Vector SRAM.
template <class Fill>
void expect_same(const std::vector<Instruction>& program, Fill fill,
                 const Settings& settings = tiny_settings()) {
  const PortedProgram ported = port(program, settings);
  ASSERT_TRUE(ported.equivalent()) << ported.findings.front().explanation;
  RsBench original(without_sum_order().name(), settings);
  RsBench target(ported.target.name(), settings);
  fill(original);
  fill(target);

  const Stop before = original.run_words(encoded(program));
  const Stop after = target.run_words(ported.words);

  ASSERT_EQ(before.reason, StopReason::Halted) << before.trap->rule;
  ASSERT_EQ(after.reason, StopReason::Halted) << after.trap->pc << " " << after.trap->rule;
  for (std::uint64_t element = 0; element < original.machine.vram_elements(); ++element) {
    const float want = original.lane(element), have = target.lane(element);
    if (std::isnan(want) && std::isnan(have)) continue;
    EXPECT_EQ(original.bits(element), target.bits(element)) << "element " << element;
  }
}

void expect_finding(const PortedProgram& ported, RsSwitch rs_switch, PortOutcome outcome) {
  EXPECT_THAT(ported.findings, Contains(testing::AllOf(Field(&PortFinding::rs_switch, rs_switch),
                                                       Field(&PortFinding::outcome, outcome))));
}

// A tile of small integers and two rows of V.
void fill_product(RsBench& bench) {
  bench.tile([](std::uint64_t r, std::uint64_t c) { return static_cast<float>(r + 2 * c); });
  for (std::uint64_t row = 0; row < 4; ++row)
    bench.row(row * 8, {1, 2, 3, static_cast<float>(row), 0, 1, 0, -2});
}

TEST(Port, AProgramOfBothDialectsStaysAsItIs) {
  const std::vector<Instruction> program = {addi(1, 0, 8), {.op = Op::V_ADD_VV, .rd = 1}};

  const PortedProgram ported = port(program);

  EXPECT_TRUE(ported.findings.empty());
  EXPECT_EQ(ported.words, encoded(program));
  EXPECT_EQ(ported.target, Dialect());
}

TEST(Port, SwapsTheOperandsOfADifference) {
  expect_same({addi(1, 0, 8), addi(2, 0, 16), {.op = Op::V_SUB_VV, .rd = 2, .rs1 = 0, .rs2 = 1}},
              [](RsBench& bench) { bench.row(0, {5, 1}).row(8, {2, 9}); });
}

// Every column block of the tile in turn, as compiled linear layers do it.
std::vector<Instruction> column_loop(std::uint8_t column) {
  return {addi(column, 0, 0),
          addi(3, 0, 64),
          loop_start(4, 4),
          addi(2, column, 0),
          {.op = Op::M_MM, .rs1 = 2, .rs2 = 1},
          {.op = Op::M_MM_WO, .rd = 3},
          addi(column, column, 16),
          addi(3, 3, 2),
          loop_end(4)};
}

TEST(Port, RecodesColumnOffsetsWhereTheyAreComputed) {
  const auto program = column_loop(5);

  expect_same(program, fill_product);

  const PortedProgram ported = port(program);
  EXPECT_EQ(ported.words.size(), program.size());
  EXPECT_EQ(ported.words[6], encode(addi(5, 5, 2)));
  expect_finding(ported, RsSwitch::TileAddress, PortOutcome::Rewritten);
  expect_finding(ported, RsSwitch::SumOrder, PortOutcome::Rounding);
}

TEST(Port, ASpareRegisterFollowsOneThatServesSomethingElse) {
  auto program = column_loop(5);
  program.push_back({.op = Op::V_ADD_VV, .rd = 5, .rs1 = 1, .rs2 = 1});  // gp5 is a row as well

  expect_same(program, fill_product);

  EXPECT_GT(port(program).words.size(), program.size());
}

TEST(Port, AnAddressFromIntMemIsUnknown) {
  const PortedProgram ported =
      port({{.op = Op::S_LD_INT, .rd = 2}, {.op = Op::M_MM, .rs1 = 2, .rs2 = 1}});

  EXPECT_FALSE(ported.equivalent());
  expect_finding(ported, RsSwitch::TileAddress, PortOutcome::Unknown);
}

TEST(Port, AnAddressTheProgramItselfStoredIsKnown) {
  const PortedProgram ported = port({addi(3, 0, 0),
                                     {.op = Op::S_ST_INT, .rd = 3},
                                     {.op = Op::S_LD_INT, .rd = 2},
                                     {.op = Op::M_MM, .rs1 = 2, .rs2 = 1}});

  EXPECT_TRUE(ported.equivalent());
}

TEST(Port, AProductInTheAddressCannotBeFollowed) {
  const PortedProgram ported = port({addi(1, 0, 4),
                                     {.op = Op::S_MUL_INT, .rd = 2, .rs1 = 1, .rs2 = 1},
                                     {.op = Op::M_MM, .rs1 = 2}});

  expect_finding(ported, RsSwitch::TileAddress, PortOutcome::NotRewritten);
}

TEST(Port, ColumnsThatOverflowTheirTileAreNoticed) {
  // 4 * 16 = 64 is the next tile in rows; in columns 4 * 2 = 8 is none.
  const PortedProgram ported = port({addi(2, 0, 16),
                                     addi(2, 2, 16),
                                     addi(2, 2, 16),
                                     addi(2, 2, 16),
                                     {.op = Op::M_MM, .rs1 = 2},
                                     {.op = Op::M_MM_WO, .rd = 1},
                                     addi(2, 2, 16),
                                     {.op = Op::M_MM, .rs1 = 2}});

  expect_finding(ported, RsSwitch::TileAddress, PortOutcome::NotRewritten);
}

TEST(Port, MvBecomesTheLastRowOfMm) {
  for (const Op op : {Op::M_MV, Op::M_TMV}) {
    const std::uint32_t column = op == Op::M_MV ? 4 : 0;
    expect_same({addi(1, 0, column),
                 addi(2, 0, 24),
                 addi(3, 0, 80 + 6),
                 {.op = op, .rs1 = 1, .rs2 = 2},
                 {.op = Op::M_MV_WO, .rd = 3}},
                fill_product);
  }
}

TEST(Port, MvOfAVectorWithoutRowsBeforeItIsNotRewritten) {
  expect_finding(port({{.op = Op::M_MV, .rs1 = 1, .rs2 = 2}}), RsSwitch::Mv,
                 PortOutcome::NotRewritten);
}

TEST(Port, QuartersWhatBroadcastProductsWrite) {
  expect_same(
      {addi(3, 0, 64), {.op = Op::M_BTMM, .rs1 = 1, .rs2 = 1}, {.op = Op::M_BMM_WO, .rd = 3}},
      fill_product);
  expect_same({addi(3, 0, 64),
               {.op = Op::M_BTMV, .rs1 = 1, .rs2 = 1},
               {.op = Op::M_BMV_WO, .rd = 3, .imm = 16U << 4}},
              fill_product);
}

TEST(Port, LanesOfBmmAreNotRewritten) {
  const PortedProgram ported = port({{.op = Op::M_BMM}, {.op = Op::M_BMM_WO, .rd = 1}});

  expect_finding(ported, RsSwitch::BmmLanes, PortOutcome::NotRewritten);
}

TEST(Port, OverlappingAccumulatorsAreNamed) {
  const PortedProgram ported = port({{.op = Op::M_MM}, {.op = Op::M_BTMM}, {.op = Op::M_MM_WO}});

  expect_finding(ported, RsSwitch::Accumulators, PortOutcome::NotRewritten);
}

TEST(Port, MergesMaskedLanesToTheBit) {
  for (const Op op : {Op::V_ADD_VV, Op::V_MUL_VV, Op::V_SUB_VV, Op::V_RECI_V, Op::V_EXP_V}) {
    const auto rs2 = static_cast<std::uint8_t>(op == Op::V_RECI_V || op == Op::V_EXP_V ? 0 : 2);
    for (const std::uint8_t rd : {std::uint8_t{1}, std::uint8_t{3}}) {
      expect_same({addi(1, 0, 8),
                   addi(2, 0, 16),
                   addi(3, 0, 24),
                   addi(4, 0, 2),
                   {.op = Op::C_SET_V_MASK_REG, .rd = 4},
                   {.op = op, .rd = rd, .rs1 = 1, .rs2 = rs2, .select = 1},
                   {.op = Op::V_ADD_VV, .rd = 2, .rs1 = 2, .rs2 = 2, .select = 3}},
                  [](RsBench& bench) {
                    bench.row(8, {-0.0F, 1, -2, 0, -0.0F, 3, -4, 0})
                        .row(16, {5, 6, 7, 8, -0.0F, -3, 0.5F, -0.0F});
                  });
    }
  }
}

TEST(Port, AMaskOfAllLanesIsLeftOut) {
  const PortedProgram ported = port({addi(4, 0, 3),
                                     {.op = Op::C_SET_V_MASK_REG, .rd = 4},
                                     {.op = Op::V_ADD_VV, .rd = 1, .select = 1}});

  EXPECT_TRUE(ported.equivalent());
  EXPECT_EQ(ported.words[2], encode({.op = Op::V_ADD_VV, .rd = 1}));
}

TEST(Port, ClosesOpenLoopsAndSetsRegistersFirst) {
  const PortedProgram ported = port({loop_start(1, 3), {.op = Op::H_PREFETCH_V}});

  EXPECT_TRUE(ported.equivalent());
  expect_finding(ported, RsSwitch::Loops, PortOutcome::Rewritten);
  expect_finding(ported, RsSwitch::Registers, PortOutcome::Rewritten);
  expect_finding(ported, RsSwitch::Mx, PortOutcome::DataDependent);
  RsBench bench("plena");
  EXPECT_EQ(bench.run_words(ported.words).reason, StopReason::Halted);
  EXPECT_EQ(bench.machine.gp[1], 3U);
}

TEST(Port, AStrideThatWasNeverSetIsOne) {
  Settings settings = tiny_settings();
  settings.hbm_v_prefetch_amount = 1;
  const PortedProgram ported = port({{.op = Op::H_PREFETCH_V, .select = 1}}, settings);

  RsBench bench("plena", settings);
  EXPECT_EQ(bench.run_words(ported.words).reason, StopReason::Halted);
  EXPECT_EQ(bench.machine.stride, 1U);
}

TEST(Port, WritesIgnoredBitsAsTheSpecificationHasThem) {
  const std::uint32_t word = encode({.op = Op::S_ADD_INT, .rd = 1}) | 1U << 31;

  const auto ported = port_program({word}, tiny_settings());

  EXPECT_EQ(ported->words, encoded({{.op = Op::S_ADD_INT, .rd = 1}}));
  expect_finding(*ported, RsSwitch::Decode, PortOutcome::Rewritten);
}

TEST(Port, StoresOfMxTypesAreNotRewritten) {
  expect_finding(port({{.op = Op::H_STORE_V}}), RsSwitch::Mx, PortOutcome::NotRewritten);
}

TEST(Port, NamesTransfersThatMeetTheEmulatorsAddressRules) {
  // Offset 4 starts inside a block of 8.
  expect_finding(port({addi(1, 0, 4), {.op = Op::H_PREFETCH_V, .rs1 = 1}}), RsSwitch::HbmBytes,
                 PortOutcome::NotRewritten);
  // The last row of Vector SRAM and one beyond.
  expect_finding(port({addi(1, 0, 248), {.op = Op::H_PREFETCH_V, .rd = 1}}), RsSwitch::HbmBytes,
                 PortOutcome::NotRewritten);
}

// ------------------------------------------------------------ compiled kernels

Machine machine_of(const Bundle& bundle, const Dialect& dialect) {
  Settings settings = settings_for(bundle.settings, Dialect::plena_rs());
  settings.max_loop_instructions = 0;  // a ported program has more instructions a loop
  Machine machine = std::move(*Machine::create(settings, dialect));
  EXPECT_TRUE(machine.write_elements(MemoryKind::Hbm, 0, bundle.hbm));
  EXPECT_TRUE(machine.write_elements(MemoryKind::IntMem, 0, bundle.int_sram));
  EXPECT_TRUE(machine.write_elements(MemoryKind::Vram, 0, bundle.vram));
  for (std::size_t k = 0; k + 1 < bundle.fp_sram.size(); k += 2) {
    const std::uint32_t half = bundle.fp_sram[k] | std::uint32_t{bundle.fp_sram[k + 1]} << 8;
    machine.fp_mem[k / 2] = convert_fp(kFp16, machine.scalar_element(), half);
  }
  return machine;
}

Machine run_to_end(const Bundle& bundle, const Dialect& dialect,
                   const std::vector<std::uint32_t>& words, Observer* observer = nullptr) {
  Machine machine = machine_of(bundle, dialect);
  const auto program = prepare(words, machine.settings, dialect);
  EXPECT_TRUE(program) << bundle.name << ": " << program.error().rule;
  if (!program) return machine;
  const Stop stop = run(machine, **program, {.observer = observer});
  EXPECT_EQ(stop.reason, StopReason::Halted) << bundle.name << ": " << stop.trap->rule;
  return machine;
}

// Rows that were read from HBM.
class Reads final : public Observer {
 public:
  void retired(const Machine&, std::uint64_t, const Instruction&) override {}
  void moved_row(const HbmRow& row) override { rows.push_back(row); }
  std::vector<HbmRow> rows;
};

// Takes out of the image what the two dialects decode differently.
void keep_common_codes(const std::vector<HbmRow>& rows, std::uint64_t hbm_size, Bytes& image) {
  for (const HbmRow& row : rows) {
    const std::uint64_t end =
        std::max(row.element_address + row.element_bytes, row.scale_address + row.scale_bytes);
    image.resize(std::max<std::uint64_t>(image.size(), std::min(end, hbm_size)));
  }
  const auto each = [&](std::uint64_t begin, std::uint64_t count, auto change) {
    for (std::uint64_t at = begin; at < std::min<std::uint64_t>(begin + count, image.size()); ++at)
      image[at] = change(image[at]);
  };
  for (const HbmRow& row : rows) {
    each(row.scale_address, row.scale_bytes, [](std::uint8_t scale) -> std::uint8_t {
      return scale == 0 ? 64 : scale == 255 ? 127 : scale;
    });
  }
  for (const HbmRow& row : rows) {
    each(row.element_address, row.element_bytes, [](std::uint8_t code) {
      const unsigned sign = code & 0x80U;
      const unsigned exponent = code & 0x78U;
      return static_cast<std::uint8_t>(exponent == 0      ? sign
                                       : exponent == 0x78 ? sign | 0x77
                                                          : code);
    });
  }
}

bool same_memories(const Machine& a, const Machine& b) {
  for (const MemoryKind memory : {MemoryKind::Vram, MemoryKind::Mram, MemoryKind::Hbm}) {
    if (emulator_dump(a, memory).bytes != emulator_dump(b, memory).bytes) return false;
  }
  const std::size_t entries = std::min(a.fp_mem.size(), b.fp_mem.size());
  return a.int_mem == b.int_mem &&
         std::equal(a.fp_mem.begin(), a.fp_mem.begin() + static_cast<std::ptrdiff_t>(entries),
                    b.fp_mem.begin());
}

std::vector<std::uint32_t> words_of(const Bundle& bundle) {
  std::vector<std::uint32_t> words;
  std::istringstream text(bundle.program);
  for (std::string token; text >> token;)
    words.push_back(static_cast<std::uint32_t>(std::stoul(token, nullptr, 16)));
  return words;
}

TEST(Port, CompiledKernelsThatAreSaidToBeTheSameLeaveTheSameMemories) {
  PLENA_NEEDS_SHARED();
  std::size_t compared = 0;
  std::vector<std::string> claimed;
  for (const auto& entry :
       std::filesystem::directory_iterator(shared_data() + "/conformance/kernels")) {
    auto bundle = load_bundle(entry.path().string());
    ASSERT_TRUE(bundle) << entry.path();
    const auto words = words_of(*bundle);
    const auto ported = port_program(words, bundle->settings);
    ASSERT_TRUE(ported) << entry.path();
    if (!ported->equivalent()) continue;
    claimed.push_back(bundle->name);

    Reads reads;
    run_to_end(*bundle, without_sum_order(), words, &reads);
    keep_common_codes(reads.rows, bundle->settings.hbm_size, bundle->hbm);
    const Machine original = run_to_end(*bundle, without_sum_order(), words);
    const Machine values = run_to_end(*bundle, *Dialect::parse(kOtherSwitches), words);
    if (!same_memories(original, values)) continue;  // the values that are named do occur

    const Machine target = run_to_end(*bundle, ported->target, ported->words);
    EXPECT_TRUE(same_memories(original, target)) << bundle->name;
    ++compared;
  }
  EXPECT_GE(claimed.size(), 40U) << testing::PrintToString(claimed);
  EXPECT_GE(compared, 25U);
}

}  // namespace
}  // namespace plena
