#include "plena/observe/timeline_trace.h"

#include <algorithm>
#include <filesystem>

#include "plena/asm/disassembler.h"

namespace plena {

using perfetto::Argument;
using perfetto::SliceKind;

// ------------------------------------------------------------ construction

Result<std::unique_ptr<TimelineTrace>> TimelineTrace::create(Options options,
                                                             const Program& program,
                                                             const Timing& timing,
                                                             const Settings& settings,
                                                             const Dialect& dialect) {
  if (timing.profile().overlap == Overlap::Ideal) {
    return fail_with_hint(ErrorCode::Usage,
                          fmt::format("profile {} has as many units as wanted, so that there are "
                                      "no tracks to draw",
                                      timing.profile().name),
                          "trace with --timing pipelined or serial");
  }
  auto file = perfetto::TraceFile::create(options.path);
  if (!file) return forward_error(file);
  return std::unique_ptr<TimelineTrace>(
      new TimelineTrace(std::move(options), std::move(*file), program, timing, settings, dialect));
}

TimelineTrace::TimelineTrace(Options options, perfetto::TraceFile file, const Program& program,
                             const Timing& timing, const Settings& settings, const Dialect& dialect)
    : options_(std::move(options)),
      file_(std::move(file)),
      program_(program),
      timing_(timing),
      timed_(timing.program().timed.data()),
      dialect_(dialect),
      fetch_(fetch_cycles(settings)),
      serial_(timing.profile().overlap == Overlap::Serial),
      kinds_(program.words.size()),
      region_map_(program) {
  add_tracks();
  waited_for_ = file_.intern_argument("waited for");
  waited_ = file_.intern_argument("waited cycles");
  bytes_ = file_.intern_argument("bytes");
  bursts_ = file_.intern_argument("bursts");
  activates_ = file_.intern_argument("rows opened");
  for (std::size_t c = 0; c < kStallCauseCount; ++c) {
    const std::string_view name = cause_name(static_cast<Cause>(c));
    cause_kinds_[c] = file_.slice_kind(name);
    cause_texts_[c] = file_.intern_text(name);
  }
  run_kinds_ = {file_.slice_kind("read"), file_.slice_kind("write"), file_.slice_kind("refresh")};
  for (const ProgramRegion& region : program.regions)
    region_kinds_.push_back(file_.slice_kind(region.name));
}

void TimelineTrace::add_tracks() {
  const TimingProfile& profile = timing_.profile();
  const Track process = file_.add_process(fmt::format(
      "{} ({}, 1 ns = 1 cycle of {} MHz)", options_.title, profile.name, profile.clock_mhz));
  if (!program_.regions.empty()) regions_ = file_.add_track("regions", process);
  if (!serial_) waiting_ = file_.add_track("next instruction waits for", process);
  for (std::size_t u = 0; u < kUnitCount; ++u) {
    const auto unit = static_cast<Unit>(u);
    const std::string name(unit_name(unit));
    units_[u] = file_.add_track(name, process);
    if (is_transfer_unit(unit))
      transfers_[u] = {.name = name, .parent = process, .tracks = {units_[u]}};
    if (unit == Unit::Matrix) {
      array_ = {.name = "array", .parent = process, .tracks = {file_.add_track("array", process)}};
    }
  }
  utilisation_ = file_.add_counter("array utilisation", "%", process);
  if (timing_.hbm().controller_statistics()) add_channels(process);
}

void TimelineTrace::add_channels(Track process) {
  const dram::DramSettings& memory = timing_.profile().hbm;
  runs_.emplace(memory);
  bandwidth_ = file_.add_counter("HBM bandwidth", "bytes/cycle", process);
  queue_ = file_.add_counter("HBM queues", "bursts", process);
  const Track group =
      file_.add_track(fmt::format("HBM channels ({})", memory.preset.name), process);
  const std::uint32_t pseudo_channels = memory.preset.organisation.pseudo_channels;
  for (std::uint32_t c = 0; c < memory.channels * pseudo_channels; ++c) {
    channels_.push_back(file_.add_track(
        fmt::format("channel {}.{}", c / pseudo_channels, c % pseudo_channels), group));
  }
}

// ------------------------------------------------------------ instructions

void TimelineTrace::name_instruction(std::uint32_t pc) {
  const std::uint32_t line = pc < program_.lines.size() ? program_.lines[pc] : 0;
  kinds_[pc] =
      file_.slice_kind(disassemble(program_.words[pc], dialect_), program_.source_name, line);
}

void TimelineTrace::issued(const IssueEvent& event) {
  if (region_map_.innermost[event.pc] != region_) follow_regions(event);
  const SliceKind& kind = instruction_slice(event.pc);
  latest_ = std::max(latest_, event.issue + 1);
  if (event.stall != 0) {
    file_.slice(waiting_, event.issue - event.stall, event.issue,
                cause_kinds_[static_cast<std::size_t>(event.cause)]);
  }
  if (is_transfer_unit(event.unit)) {
    moving_.push_back(event);
  } else {
    draw_in_unit(event, kind);
  }
  check();
}

// How long the instruction keeps its unit busy.
void TimelineTrace::draw_in_unit(const IssueEvent& event, const SliceKind& kind) {
  const TimedInstruction& i = timed_[event.pc];
  const Cycle end = serial_ ? event.complete : event.issue + i.interval;
  const Track track = units_[static_cast<std::size_t>(event.unit)];
  if (event.stall == 0) [[likely]] {
    file_.slice(track, event.issue, end, kind);
  } else {
    const std::array<Argument, 2> why = {
        Argument{waited_for_, cause_texts_[static_cast<std::size_t>(event.cause)], true},
        Argument{waited_, event.stall}};
    file_.slice(track, event.issue, end, kind, why);
  }
  latest_ = std::max(latest_, end);
  if (i.kind == TimedKind::Compute) draw_in_array(event, kind);
}

// A compute fetches its operands first; the rest of its latency it spends in the array (timing.md).
// The next may enter before it has left.
void TimelineTrace::draw_in_array(const IssueEvent& event, const SliceKind& kind) {
  const TimedInstruction& i = timed_[event.pc];
  if (i.latency <= fetch_) return;
  const Cycle begin = event.issue + fetch_;
  const Cycle end = event.issue + i.latency;
  file_.slice(lane(array_, begin, end), begin, end, kind);
  latest_ = std::max(latest_, end);
  computing_.add_interval(event.issue, event.issue + i.interval,
                          [&](Cycle cycle, std::uint64_t cycles) {
                            file_.count(utilisation_, cycle, 100 * cycles / WindowSums::kWindow);
                          });
}

TimelineTrace::Track TimelineTrace::lane(LaneTracks& lanes, Cycle begin, Cycle end) {
  const std::size_t lane = lanes.lanes.take(begin, end);
  if (lane == lanes.tracks.size())
    lanes.tracks.push_back(file_.add_lane(lanes.name, lanes.parent, lanes.tracks.front()));
  return lanes.tracks[lane];
}

// Leaves the regions that do not hold this instruction and enters those that do, outermost first.
void TimelineTrace::follow_regions(const IssueEvent& event) {
  region_ = region_map_.innermost[event.pc];
  std::vector<std::uint32_t> holding;
  for (std::uint32_t r = region_; r != kNoRegion; r = region_map_.parent[r]) holding.push_back(r);
  std::ranges::reverse(holding);
  const auto [stays, enters] = std::ranges::mismatch(open_regions_, holding);
  for (auto left = open_regions_.end(); left != stays; --left) file_.end(regions_, event.issue);
  open_regions_.erase(stays, open_regions_.end());
  for (auto entered = enters; entered != holding.end(); ++entered) {
    file_.begin(regions_, event.issue, region_kinds_[*entered]);
    open_regions_.push_back(*entered);
  }
}

// ------------------------------------------------------------ memory

void TimelineTrace::transferred(const TransferEvent& event) {
  const auto issued = std::ranges::find_if(moving_, [&](const IssueEvent& moving) {
    return moving.issue == event.issue && moving.pc == event.pc;
  });
  if (issued == moving_.end()) return;
  std::array<Argument, 3> arguments = {Argument{bytes_, event.bursts * kBurstBytes}};
  std::size_t count = 1;
  if (issued->stall != 0) {
    arguments[count++] = {waited_for_, cause_texts_[static_cast<std::size_t>(issued->cause)], true};
    arguments[count++] = {waited_, issued->stall};
  }
  LaneTracks& lanes = transfers_[static_cast<std::size_t>(event.unit)];
  file_.slice(lane(lanes, event.issue, event.complete), event.issue, event.complete,
              instruction_slice(event.pc), std::span(arguments).first(count));
  moving_.erase(issued);
  latest_ = std::max(latest_, event.complete);
}

void TimelineTrace::commanded(std::span<const dram::CommandRecord> commands,
                              const ClockRatio& clock) {
  for (const dram::CommandRecord& command : commands) {
    runs_->add(command, clock, [&](const ChannelRun& run) { draw(run); });
    if (!dram::is_column(command.command)) continue;
    const Cycle cycle = clock.cycle_at(static_cast<std::uint64_t>(command.tick));
    moved_.add(cycle, 1, [&](Cycle window, std::uint64_t bursts) {
      file_.count(bandwidth_, window, bursts * kBurstBytes / WindowSums::kWindow);
    });
    if (cycle / WindowSums::kWindow >= next_sample_) sample_queues(cycle);
  }
}

// Once a window; where the memory rested for a while its queues were empty.
void TimelineTrace::sample_queues(Cycle cycle) {
  const std::uint64_t window = cycle / WindowSums::kWindow;
  if (window > next_sample_ && queued_ != 0)
    file_.count(queue_, next_sample_ * WindowSums::kWindow, 0);
  queued_ = timing_.hbm().queued_bursts();
  file_.count(queue_, window * WindowSums::kWindow, queued_);
  next_sample_ = window + 1;
}

void TimelineTrace::draw(const ChannelRun& run) {
  const std::uint32_t pseudo_channels = timing_.profile().hbm.preset.organisation.pseudo_channels;
  const std::array<Argument, 2> arguments = {Argument{bursts_, run.bursts},
                                             Argument{activates_, run.activates}};
  const bool refresh = run.kind == ChannelRun::Kind::Refresh;
  file_.slice(channels_[run.channel * pseudo_channels + run.pseudo_channel], run.begin, run.end,
              run_kinds_[static_cast<std::size_t>(run.kind)],
              refresh ? std::span<const Argument>() : arguments);
}

// ------------------------------------------------------------ the end

void TimelineTrace::check() {
  if (!file_.failed() || told_failure_) [[likely]]
    return;
  told_failure_ = true;
  if (options_.failed) options_.failed();
}

Status TimelineTrace::finish() {
  for (std::size_t open = open_regions_.size(); open != 0; --open) file_.end(regions_, latest_);
  open_regions_.clear();
  computing_.finish([&](Cycle cycle, std::uint64_t cycles) {
    file_.count(utilisation_, cycle, 100 * cycles / WindowSums::kWindow);
  });
  if (runs_) {
    runs_->finish([&](const ChannelRun& run) { draw(run); });
    moved_.finish([&](Cycle window, std::uint64_t bursts) {
      file_.count(bandwidth_, window, bursts * kBurstBytes / WindowSums::kWindow);
    });
    if (queued_ != 0) file_.count(queue_, next_sample_ * WindowSums::kWindow, 0);
  }
  return file_.finish();
}

}  // namespace plena
