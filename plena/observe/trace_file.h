// A Perfetto trace that is written while a run goes on: tracks, slices, counters, interned names.
// Knows nothing of the machine; bounded memory however long the run.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plena/base/files.h"
#include "plena/observe/background_writer.h"

namespace plena::perfetto {

class Message;
using TrackId = std::uint32_t;

/// What slices of one kind have in common, encoded once.
struct SliceKind {
  std::array<std::uint8_t, 20> bytes{};  // the fields of a TrackEvent, but its track
  std::uint8_t size = 0;
};

/// A number or a known text beside a slice.
struct Argument {
  std::uint32_t name = 0;   // of intern_argument()
  std::uint64_t value = 0;  // the number, or the intern_text() of a text
  bool is_text = false;
};
inline constexpr std::size_t kMostArguments = 3;

/// Timestamps are whatever the caller counts; viewers take them for nanoseconds. Slices of one
/// track come in order and do not overlap, unless one lies within the other. An error while writing
/// makes failed() true, and finish() returns it; what follows it is dropped.
class TraceFile {
 public:
  static Result<TraceFile> create(const std::string& path);

  /// The top of everything, once.
  TrackId add_process(std::string_view name);
  /// A track below another; siblings are shown in the order they were added.
  TrackId add_track(std::string_view name, TrackId parent);
  /// A further track that is shown in the place of `like`, which has the same name and parent.
  TrackId add_lane(std::string_view name, TrackId parent, TrackId like);
  TrackId add_counter(std::string_view name, std::string_view unit, TrackId parent);

  std::uint32_t intern_argument(std::string_view name);
  std::uint32_t intern_text(std::string_view text);
  /// Slices of this name; `line` of `file` where it is not 0.
  SliceKind slice_kind(std::string_view name, std::string_view file = {}, std::uint32_t line = 0);

  void begin(TrackId track, std::uint64_t at, const SliceKind& kind,
             std::span<const Argument> arguments = {});
  void end(TrackId track, std::uint64_t at);
  void slice(TrackId track, std::uint64_t from, std::uint64_t to, const SliceKind& kind);
  void slice(TrackId track, std::uint64_t from, std::uint64_t to, const SliceKind& kind,
             std::span<const Argument> arguments) {
    begin(track, from, kind, arguments);
    end(track, to);
  }
  void count(TrackId track, std::uint64_t at, std::uint64_t value);

  [[nodiscard]] bool failed() const { return failed_; }
  /// Writes what is left; the file appears under its name. The error that came first, if any did.
  Status finish();

 private:
  explicit TraceFile(FileWriter file);

  TrackId add(std::string_view name, TrackId parent, std::int32_t rank, std::string_view unit,
              bool counter);
  void packet(const Message& message);
  std::uint8_t* room(std::size_t bytes);
  void flush();

  std::unique_ptr<BackgroundWriter> file_;
  bool failed_ = false;
  std::vector<std::uint8_t> buffer_;
  std::size_t filled_ = 0;
  std::vector<std::int32_t> ranks_;  // by track
  std::uint32_t next_name_ = 1;
  std::uint32_t next_argument_ = 1;
  std::uint32_t next_text_ = 1;
  std::uint32_t next_location_ = 1;
};

}  // namespace plena::perfetto
