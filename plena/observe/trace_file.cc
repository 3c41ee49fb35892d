#include "plena/observe/trace_file.h"

#include <algorithm>

#include "plena/observe/perfetto_message.h"

namespace plena::perfetto {

namespace {

// Everything is one sequence of packets: names are interned once.
constexpr std::uint32_t kSequenceId = 1;
constexpr std::uint32_t kProcessId = 1;

constexpr std::uint8_t kPacketTag = 0x0A;  // Trace.packet
constexpr std::size_t kBuffer = std::size_t{1} << 20;
// An event packet: two bytes of tag and length, sequence, timestamp, event. Its length stays below
// 128, a single byte.
constexpr std::size_t kMostEventBytes = 128;

// A name longer than that helps nobody, and one packet must fit into the buffer.
constexpr std::size_t kLongestName = 1000;

std::string_view shortened(std::string_view name) {
  if (name.size() <= kLongestName) return name;
  std::size_t end = kLongestName;
  // Not in the middle of a UTF-8 character.
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0U) == 0x80U) --end;
  return name.substr(0, end);
}

constexpr std::uint8_t byte_tag(std::uint32_t tag) {
  return static_cast<std::uint8_t>(tag);
}

// The arguments of a slice; returns where they end.
std::uint8_t* write_arguments(std::uint8_t* out, std::span<const Argument> arguments) {
  for (const Argument& argument : arguments.first(std::min(arguments.size(), kMostArguments))) {
    *out++ = byte_tag(bytes_tag(field::kDebugAnnotation));
    std::uint8_t* length = out++;
    *out++ = byte_tag(number_tag(field::kAnnotationNameIid));
    out = write_varint(out, argument.name);
    out = write_varint(
        out, number_tag(argument.is_text ? field::kAnnotationStringIid : field::kAnnotationUint));
    out = write_varint(out, argument.value);
    *length = static_cast<std::uint8_t>(out - length - 1);
  }
  return out;
}

Message sequence_packet() {
  return std::move(Message().number(field::kSequence, kSequenceId));
}

Message interned(std::uint32_t kind, std::uint32_t iid, std::string_view text,
                 std::uint32_t line = 0) {
  Message entry;
  entry.number(field::kIid, iid).text(field::kInternedText, shortened(text));
  if (line != 0) entry.number(field::kLineNumber, line);
  return sequence_packet().message(field::kInternedData, Message().message(kind, entry));
}

}  // namespace

// ------------------------------------------------------------ bytes

Result<TraceFile> TraceFile::create(const std::string& path) {
  auto file = FileWriter::create(path);
  if (!file) return forward_error(file);
  return TraceFile(std::move(*file));
}

TraceFile::TraceFile(FileWriter file)
    : file_(std::make_unique<BackgroundWriter>(std::move(file))), buffer_(kBuffer) {
  packet(sequence_packet().number(field::kSequenceFlags, kIncrementalStateCleared));
}

std::uint8_t* TraceFile::room(std::size_t bytes) {
  if (kBuffer - filled_ < bytes) [[unlikely]]
    flush();
  return buffer_.data() + filled_;
}

// Only whole packets are ever handed on.
void TraceFile::flush() {
  failed_ = !file_->append(buffer_, filled_);
  filled_ = 0;
}

void TraceFile::packet(const Message& message) {
  const auto& bytes = message.bytes();
  std::uint8_t* out = room(bytes.size() + 1 + kMaxVarint);
  const std::uint8_t* start = out;
  *out++ = kPacketTag;
  out = write_varint(out, bytes.size());
  out = std::copy(bytes.begin(), bytes.end(), out);
  filled_ += static_cast<std::size_t>(out - start);
}

Status TraceFile::finish() {
  flush();
  return file_->finish();
}

// ------------------------------------------------------------ tracks

TrackId TraceFile::add(std::string_view name, TrackId parent, std::int32_t rank,
                       std::string_view unit, bool counter) {
  ranks_.push_back(rank);
  const auto id = static_cast<TrackId>(ranks_.size());
  Message track;
  track.number(field::kUuid, id);
  if (parent == 0) {
    Message process;
    process.number(field::kPid, kProcessId).text(field::kProcessName, shortened(name));
    track.message(field::kProcess, process);
  } else {
    track.text(field::kTrackName, shortened(name)).number(field::kParentUuid, parent);
  }
  if (counter) {
    track.message(field::kCounter, Message().text(field::kUnitName, unit));
  } else {
    track.number(field::kChildOrdering, kExplicitOrder);
  }
  track.number(field::kSiblingRank, static_cast<std::uint64_t>(rank));
  packet(sequence_packet().message(field::kTrackDescriptor, track));
  return id;
}

TrackId TraceFile::add_process(std::string_view name) {
  return add(name, 0, 0, {}, false);
}

TrackId TraceFile::add_track(std::string_view name, TrackId parent) {
  return add(name, parent, static_cast<std::int32_t>(ranks_.size()), {}, false);
}

TrackId TraceFile::add_lane(std::string_view name, TrackId parent, TrackId like) {
  return add(name, parent, ranks_[like - 1], {}, false);
}

TrackId TraceFile::add_counter(std::string_view name, std::string_view unit, TrackId parent) {
  return add(name, parent, static_cast<std::int32_t>(ranks_.size()), unit, true);
}

// ------------------------------------------------------------ names

std::uint32_t TraceFile::intern_argument(std::string_view name) {
  packet(interned(field::kAnnotationNames, next_argument_, name));
  return next_argument_++;
}

std::uint32_t TraceFile::intern_text(std::string_view text) {
  packet(interned(field::kAnnotationStrings, next_text_, text));
  return next_text_++;
}

SliceKind TraceFile::slice_kind(std::string_view name, std::string_view file, std::uint32_t line) {
  Message event;
  event.number(field::kType, kSliceBegin).number(field::kNameIid, next_name_);
  packet(interned(field::kEventNames, next_name_++, name));
  if (line != 0) {
    event.number(field::kSourceLocationIid, next_location_);
    packet(interned(field::kSourceLocations, next_location_++, file, line));
  }
  SliceKind kind;
  kind.size = static_cast<std::uint8_t>(event.bytes().size());
  std::copy(event.bytes().begin(), event.bytes().end(), kind.bytes.begin());
  return kind;
}

// ------------------------------------------------------------ events

namespace {

// One event packet at `out`, which has room for kMostEventBytes: `fields(out)` writes the event's
// own fields and returns where they end. The two lengths before them are a byte each. Returns where
// the packet ends.
template <class Fields>
[[gnu::always_inline]] inline std::uint8_t* write_event(std::uint8_t* out, std::uint64_t at,
                                                        Fields&& fields) {
  std::uint8_t* const packet = out;
  *out++ = kPacketTag;
  ++out;
  *out++ = byte_tag(number_tag(field::kSequence));
  *out++ = kSequenceId;
  *out++ = byte_tag(number_tag(field::kTimestamp));
  out = write_varint(out, at);
  *out++ = byte_tag(bytes_tag(field::kTrackEvent));
  std::uint8_t* const event = out;
  out = fields(out + 1);
  *event = static_cast<std::uint8_t>(out - event - 1);
  packet[1] = static_cast<std::uint8_t>(out - packet - 2);
  return out;
}

std::uint8_t* write_track(std::uint8_t* out, TrackId track) {
  *out++ = byte_tag(number_tag(field::kTrackUuid));
  return write_varint(out, track);
}

std::uint8_t* write_begin(std::uint8_t* out, TrackId track, const SliceKind& kind) {
  std::memcpy(out, kind.bytes.data(), kind.bytes.size());
  return write_track(out + kind.size, track);
}

std::uint8_t* write_end(std::uint8_t* out, TrackId track) {
  *out++ = byte_tag(number_tag(field::kType));
  *out++ = kSliceEnd;
  return write_track(out, track);
}

}  // namespace

void TraceFile::begin(TrackId track, std::uint64_t at, const SliceKind& kind,
                      std::span<const Argument> arguments) {
  std::uint8_t* const start = room(kMostEventBytes);
  filled_ += static_cast<std::size_t>(write_event(start, at,
                                                  [&](std::uint8_t* out) {
                                                    return write_arguments(
                                                        write_begin(out, track, kind), arguments);
                                                  }) -
                                      start);
}

void TraceFile::end(TrackId track, std::uint64_t at) {
  std::uint8_t* const start = room(kMostEventBytes);
  filled_ += static_cast<std::size_t>(
      write_event(start, at, [&](std::uint8_t* out) { return write_end(out, track); }) - start);
}

// What most of a trace is made of, in one go.
void TraceFile::slice(TrackId track, std::uint64_t from, std::uint64_t to, const SliceKind& kind) {
  std::uint8_t* const start = room(2 * kMostEventBytes);
  std::uint8_t* out = write_event(
      start, from, [&](std::uint8_t* fields) { return write_begin(fields, track, kind); });
  out = write_event(out, to, [&](std::uint8_t* fields) { return write_end(fields, track); });
  filled_ += static_cast<std::size_t>(out - start);
}

void TraceFile::count(TrackId track, std::uint64_t at, std::uint64_t value) {
  std::uint8_t* const start = room(kMostEventBytes);
  filled_ += static_cast<std::size_t>(write_event(start, at,
                                                  [&](std::uint8_t* out) {
                                                    *out++ = byte_tag(number_tag(field::kType));
                                                    *out++ = kCounterEvent;
                                                    out = write_track(out, track);
                                                    out = write_varint(
                                                        out, number_tag(field::kCounterValue));
                                                    return write_varint(out, value);
                                                  }) -
                                      start);
}

}  // namespace plena::perfetto
