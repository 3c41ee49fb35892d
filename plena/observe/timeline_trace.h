// The Perfetto trace of a timed run: a track a unit and an HBM channel, slices with disassembly,
// source line and stall cause, counters. One nanosecond of the viewer is one cycle.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plena/isa/encoding.h"
#include "plena/observe/channel_runs.h"
#include "plena/observe/lanes.h"
#include "plena/observe/region_map.h"
#include "plena/observe/trace_file.h"
#include "plena/observe/window_sums.h"
#include "plena/timing/timing.h"

namespace plena {

class TimelineTrace final : public TimelineListener {
 public:
  struct Options {
    std::string path;
    std::string title;             // what ran
    std::function<void()> failed;  // called once when the trace can no longer be written
  };

  /// `program` is the one `timing` was made for; both must outlive the trace. Fails for a profile
  /// whose units are as many as wanted: their work fits no track.
  static Result<std::unique_ptr<TimelineTrace>> create(Options options, const Program& program,
                                                       const Timing& timing,
                                                       const Settings& settings,
                                                       const Dialect& dialect);

  void issued(const IssueEvent& event) override;
  void transferred(const TransferEvent& event) override;
  void commanded(std::span<const dram::CommandRecord> commands, const ClockRatio& clock) override;

  /// After the clock's drain(): closes what is open and the file. An error of any write is told
  /// here.
  Status finish();

 private:
  using Track = perfetto::TrackId;
  // Slices that may overlap: several tracks shown as one.
  struct LaneTracks {
    std::string name;
    Track parent = 0;
    Lanes lanes;
    std::vector<Track> tracks;
  };

  TimelineTrace(Options options, perfetto::TraceFile file, const Program& program,
                const Timing& timing, const Settings& settings, const Dialect& dialect);
  void add_tracks();
  void add_channels(Track process);
  [[nodiscard]] Track lane(LaneTracks& lanes, Cycle begin, Cycle end);
  const perfetto::SliceKind& instruction_slice(std::uint32_t pc) {
    if (kinds_[pc].size == 0) [[unlikely]]
      name_instruction(pc);
    return kinds_[pc];
  }
  void name_instruction(std::uint32_t pc);
  void follow_regions(const IssueEvent& event);
  void draw_in_unit(const IssueEvent& event, const perfetto::SliceKind& kind);
  void draw_in_array(const IssueEvent& event, const perfetto::SliceKind& kind);
  void draw(const ChannelRun& run);
  void sample_queues(Cycle cycle);
  void check();

  Options options_;
  perfetto::TraceFile file_;
  const Program& program_;
  const Timing& timing_;
  const TimedInstruction* timed_;  // by pc
  Dialect dialect_;
  std::uint32_t fetch_;  // cycles before a compute reaches the array
  bool serial_;
  bool told_failure_ = false;

  // Tracks.
  Track regions_ = 0;
  Track waiting_ = 0;
  std::array<Track, kUnitCount> units_{};
  std::array<LaneTracks, kUnitCount> transfers_{};  // of the HBM units
  LaneTracks array_;
  std::vector<Track> channels_;  // by channel and pseudo-channel
  Track bandwidth_ = 0, queue_ = 0, utilisation_ = 0;

  // Slices.
  std::vector<perfetto::SliceKind> kinds_;  // by pc, made at first use
  std::array<perfetto::SliceKind, kStallCauseCount> cause_kinds_{};
  std::array<std::uint32_t, kStallCauseCount> cause_texts_{};
  std::array<perfetto::SliceKind, 3> run_kinds_{};  // by ChannelRun::Kind
  std::uint32_t waited_for_ = 0, waited_ = 0, bytes_ = 0, bursts_ = 0, activates_ = 0;

  RegionMap region_map_;
  std::vector<perfetto::SliceKind> region_kinds_;
  std::vector<std::uint32_t> open_regions_;  // outermost first
  std::uint32_t region_ = kNoRegion;

  // Counters.
  std::optional<ChannelRuns> runs_;
  std::vector<IssueEvent> moving_;  // transfers that are not complete
  WindowSums moved_;                // bursts
  WindowSums computing_;            // cycles of the array
  std::uint64_t next_sample_ = 0;   // window in which the queues are looked at again
  std::uint64_t queued_ = 0;        // as told last
  Cycle latest_ = 0;                // end of whatever was drawn
};

}  // namespace plena
