#include "plena/compiler/schedule.h"

#include <algorithm>

#include "plena/compiler/dependence.h"
#include "plena/compiler/list_schedule.h"
#include "plena/compiler/straight_block.h"
#include "plena/compiler/unroll.h"

namespace plena {

namespace {

constexpr std::size_t kWholeLoop = 160;  // instructions a loop may become
constexpr std::size_t kPartOfLoop = 64;  // instructions of a body copied a few times
constexpr std::size_t kShortBody = 40;   // instructions of a body tried in turns
constexpr std::size_t kTurns = 3;

bool ends_block(const Line& line) {
  if (!line.is_code()) return line.kind == Line::Kind::Entry;
  const Op op = line.instruction.op;
  return op == Op::C_LOOP_START || op == Op::C_LOOP_END || op == Op::C_BREAK;
}

bool is_loop_code(const Line& line, Op op) {
  return line.is_code() && line.instruction.op == op;
}

// The block's code in the order of a schedule, registers renamed.
std::vector<Line> rewrite(const StraightBlock& block, const BlockSchedule& schedule) {
  const auto register_of = [&](int value) -> std::uint32_t {
    if (value == kNoValue) return 0;
    return schedule.registers[block.values[static_cast<std::size_t>(value)].web];
  };
  std::vector<Line> code;
  for (const std::size_t n : schedule.order) {
    const BlockNode& node = block.nodes[n];
    Line line{Line::Kind::Code, node.instruction, node.comment};
    for (const Operand& operand : row_of(node.instruction.op).operands()) {
      const bool gp = operand.kind == OperandKind::Gp || operand.kind == OperandKind::RowStride;
      if (!gp && operand.kind != OperandKind::Fp) continue;
      const bool writes = operand.access != Access::Read;
      const int value = writes                        ? node.result
                        : operand.field == Field::Rd  ? node.sources[0]
                        : operand.field == Field::Rs1 ? node.sources[1]
                                                      : node.sources[2];
      set_field(line.instruction, operand.field, register_of(value));
    }
    code.push_back(std::move(line));
  }
  return code;
}

// Lines other than code go where the fewest instructions change sides; they never change places.
class MarkPlaces {
 public:
  // `written` is the line each instruction had.
  explicit MarkPlaces(std::vector<std::size_t> written) : written_(std::move(written)) {}

  // The number of instructions before a mark that stood before line `line`.
  std::size_t place(std::size_t line) {
    std::size_t best = 0;
    std::int64_t wrong = std::ranges::count_if(written_, [&](std::size_t w) { return w < line; });
    std::int64_t fewest = wrong;
    for (std::size_t at = 0; at < written_.size(); ++at) {
      wrong += written_[at] < line ? -1 : 1;
      if (wrong > fewest) continue;
      fewest = wrong;
      best = at + 1;
    }
    last_ = std::max(last_, best);
    return last_;
  }

 private:
  std::vector<std::size_t> written_;
  std::size_t last_ = 0;
};

class Pass {
 public:
  Pass(const Listing& listing, const ScheduleInput& input, const TimingProfile& profile)
      : listing_(listing),
        costs_{profile, input.settings, input.dialect, input.bases_apart},
        live_(live_before(listing)),
        states_(states_before(listing, symbols_)) {}

  Result<Listing> run() {
    for (std::size_t at = 0; at < listing_.size();) {
      std::size_t end = at;
      while (end < listing_.size() && !ends_block(listing_[end])) ++end;
      if (auto done = block(at, end); !done) return tl::unexpected(done.error());
      if (end < listing_.size()) out_.push_back(listing_[end++]);
      at = end;
    }
    return std::move(out_);
  }

 private:
  Status block(std::size_t begin, std::size_t end) {
    std::vector<Line> code;
    for (std::size_t at = begin; at < end; ++at) {
      if (listing_[at].is_code()) code.push_back(listing_[at]);
    }
    std::vector<std::size_t> written(code.size());
    for (std::size_t i = 0; i < code.size(); ++i) written[i] = i;
    if (code.size() > 1) {
      const BlockSurroundings around{states_[begin], live_[begin], live_[end]};
      const bool is_body = begin > 0 && end < listing_.size() && code.size() <= kShortBody &&
                           is_loop_code(listing_[begin - 1], Op::C_LOOP_START) &&
                           is_loop_code(listing_[end], Op::C_LOOP_END);
      auto scheduled = is_body ? best_in_turns(code, around, listing_[end].instruction.rd, written)
                               : best_of(code, around, written);
      if (!scheduled) return tl::unexpected(scheduled.error());
      code = *std::move(scheduled);
    }
    merge(begin, end, code, std::move(written));
    return {};
  }

  // The scheduled code, or the code as it is where that is no slower; `written` says what lines it
  // comes from.
  Result<std::vector<Line>> best_of(const std::vector<Line>& code, const BlockSurroundings& around,
                                    std::vector<std::size_t>& written) {
    const StraightBlock plain = make_block(code, around, symbols_, false);
    auto as_written = find_dependences(plain, costs_);
    if (!as_written) return forward_error(as_written);
    const StraightBlock block = make_block(code, around, symbols_, true);
    auto dependences = find_dependences(block, costs_);
    if (!dependences) return forward_error(dependences);
    const auto schedule = list_schedule(block, *dependences);
    if (!schedule || schedule->cycles > cycles_in_order(*as_written)) return code;
    written.clear();
    for (const std::size_t n : schedule->order) written.push_back(block.nodes[n].line);
    return rewrite(block, *schedule);
  }

  // The same for the body of a loop, by a few turns of it: what one turn leaves the next one waits
  // for.
  Result<std::vector<Line>> best_in_turns(const std::vector<Line>& code,
                                          const BlockSurroundings& around, std::uint8_t counter,
                                          std::vector<std::size_t>& written) {
    auto fewest = cycles_of_turns(code, around, counter);
    if (!fewest) return forward_error(fewest);
    const StraightBlock block = make_block(code, around, symbols_, true);
    auto dependences = find_dependences(block, costs_);
    if (!dependences) return forward_error(dependences);
    std::vector<Line> best = code;
    for (const BlockSchedule& schedule : list_schedules(block, *dependences)) {
      std::vector<Line> scheduled = rewrite(block, schedule);
      auto cycles = cycles_of_turns(scheduled, around, counter);
      if (!cycles) return forward_error(cycles);
      if (*cycles >= *fewest) continue;
      fewest = cycles;
      best = std::move(scheduled);
      written.clear();
      for (const std::size_t n : schedule.order) written.push_back(block.nodes[n].line);
    }
    return best;
  }

  Result<std::uint64_t> cycles_of_turns(const std::vector<Line>& code,
                                        const BlockSurroundings& around, std::uint8_t counter) {
    // The end of a turn reads and writes the counter, as a sum would.
    const Instruction end{.op = Op::S_ADDI_INT, .rd = counter, .rs1 = counter};
    std::vector<Line> turns;
    for (std::size_t turn = 0; turn < kTurns; ++turn) {
      turns.insert(turns.end(), code.begin(), code.end());
      turns.push_back({Line::Kind::Code, end, {}});
    }
    auto dependences = find_dependences(make_block(turns, around, symbols_, false), costs_);
    if (!dependences) return forward_error(dependences);
    return cycles_in_order(*dependences);
  }

  // Puts the block's other lines back between its code.
  void merge(std::size_t begin, std::size_t end, std::vector<Line>& code,
             std::vector<std::size_t> written) {
    MarkPlaces places(std::move(written));
    std::size_t next = 0;
    std::size_t line = 0;
    for (std::size_t at = begin; at < end; ++at) {
      if (listing_[at].is_code()) {
        ++line;
        continue;
      }
      for (const std::size_t place = places.place(line); next < place; ++next) {
        out_.push_back(std::move(code[next]));
      }
      out_.push_back(listing_[at]);
    }
    for (; next < code.size(); ++next) out_.push_back(std::move(code[next]));
  }

  const Listing& listing_;
  ScheduleCosts costs_;
  Symbols symbols_;
  std::vector<RegisterSet> live_;
  std::vector<AffineState> states_;
  Listing out_;
};

}  // namespace

Result<Listing> schedule(const Listing& listing, const ScheduleInput& input) {
  auto profile = load_profile("pipelined");
  if (!profile) return forward_error(profile);
  const Listing unrolled = unroll(listing, kWholeLoop, kPartOfLoop);
  return Pass(unrolled, input, *profile).run();
}

}  // namespace plena
