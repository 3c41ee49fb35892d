// Protocol-buffer messages of Perfetto's trace format, written by hand: a trace has two packets an
// executed instruction, and the few shapes they have are cheaper as bytes at hand than as objects.
// Not a general encoder; tests read what it writes with libprotobuf.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace plena::perfetto {

/// Field numbers of the public schema, protos/perfetto/trace of the Perfetto project (release 59).
namespace field {
// TracePacket
inline constexpr std::uint32_t kTimestamp = 8;
inline constexpr std::uint32_t kSequence = 10;  // trusted_packet_sequence_id
inline constexpr std::uint32_t kTrackEvent = 11;
inline constexpr std::uint32_t kInternedData = 12;
inline constexpr std::uint32_t kSequenceFlags = 13;
inline constexpr std::uint32_t kTrackDescriptor = 60;
// TrackDescriptor
inline constexpr std::uint32_t kUuid = 1;
inline constexpr std::uint32_t kTrackName = 2;
inline constexpr std::uint32_t kProcess = 3;
inline constexpr std::uint32_t kParentUuid = 5;
inline constexpr std::uint32_t kCounter = 8;
inline constexpr std::uint32_t kChildOrdering = 11;
inline constexpr std::uint32_t kSiblingRank = 12;
// ProcessDescriptor
inline constexpr std::uint32_t kPid = 1;
inline constexpr std::uint32_t kProcessName = 6;
// CounterDescriptor
inline constexpr std::uint32_t kUnitName = 6;
// TrackEvent
inline constexpr std::uint32_t kDebugAnnotation = 4;
inline constexpr std::uint32_t kType = 9;
inline constexpr std::uint32_t kNameIid = 10;
inline constexpr std::uint32_t kTrackUuid = 11;
inline constexpr std::uint32_t kCounterValue = 30;
inline constexpr std::uint32_t kSourceLocationIid = 34;
// DebugAnnotation
inline constexpr std::uint32_t kAnnotationNameIid = 1;
inline constexpr std::uint32_t kAnnotationUint = 3;
inline constexpr std::uint32_t kAnnotationStringIid = 17;
// InternedData
inline constexpr std::uint32_t kEventNames = 2;
inline constexpr std::uint32_t kAnnotationNames = 3;
inline constexpr std::uint32_t kSourceLocations = 4;
inline constexpr std::uint32_t kAnnotationStrings = 29;
// EventName, DebugAnnotationName, InternedString, SourceLocation
inline constexpr std::uint32_t kIid = 1;
inline constexpr std::uint32_t kInternedText = 2;
inline constexpr std::uint32_t kLineNumber = 4;
}  // namespace field

// TrackEvent.Type
inline constexpr std::uint32_t kSliceBegin = 1;
inline constexpr std::uint32_t kSliceEnd = 2;
inline constexpr std::uint32_t kCounterEvent = 4;
// TracePacket.SequenceFlags
inline constexpr std::uint32_t kIncrementalStateCleared = 1;
// TrackDescriptor.ChildTracksOrdering
inline constexpr std::uint32_t kExplicitOrder = 3;

/// Bytes a number takes at most.
inline constexpr std::size_t kMaxVarint = 10;

/// Writes a number in base 128, least significant digit first; returns where it ends.
inline std::uint8_t* write_varint(std::uint8_t* out, std::uint64_t value) {
  while (value >= 0x80) {
    *out++ = static_cast<std::uint8_t>(value | 0x80);
    value >>= 7;
  }
  *out++ = static_cast<std::uint8_t>(value);
  return out;
}

/// Tag of a field that holds a number, or bytes.
constexpr std::uint32_t number_tag(std::uint32_t field) {
  return field << 3;
}
constexpr std::uint32_t bytes_tag(std::uint32_t field) {
  return field << 3 | 2;
}

/// A message field by field, for what is written rarely.
class Message {
 public:
  Message& number(std::uint32_t field, std::uint64_t value) {
    varint(number_tag(field));
    varint(value);
    return *this;
  }
  Message& text(std::uint32_t field, std::string_view bytes) {
    varint(bytes_tag(field));
    varint(bytes.size());
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  Message& message(std::uint32_t field, const Message& inner) {
    return text(field, {reinterpret_cast<const char*>(inner.bytes_.data()), inner.bytes_.size()});
  }
  [[nodiscard]] const std::vector<std::uint8_t>& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t value) {
    std::uint8_t encoded[kMaxVarint];
    bytes_.insert(bytes_.end(), encoded, write_varint(encoded, value));
  }

  std::vector<std::uint8_t> bytes_;
};

}  // namespace plena::perfetto
