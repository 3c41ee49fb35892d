#include "plena/observe/testing/decoded_trace.h"

#include <fstream>

#include <gtest/gtest.h>

#include "perfetto_trace.pb.h"

namespace plena {

namespace {

namespace schema = perfetto_schema;
using Names = std::map<std::uint64_t, std::string>;

void add_names(const google::protobuf::RepeatedPtrField<schema::InternedName>& from, Names& to) {
  for (const auto& name : from)
    EXPECT_TRUE(to.emplace(name.iid(), name.name()).second) << "interned twice: " << name.name();
}

std::string resolve(const Names& names, std::uint64_t iid) {
  const auto found = names.find(iid);
  EXPECT_NE(found, names.end()) << "nothing is interned as " << iid;
  return found == names.end() ? "" : found->second;
}

class Decoder {
 public:
  DecodedTrace decode(const schema::Trace& trace) {
    for (const auto& packet : trace.packet()) {
      EXPECT_EQ(packet.trusted_packet_sequence_id(), 1U);
      EXPECT_EQ(packet.unknown_fields(), "");
      if (packet.has_track_descriptor()) describe(packet.track_descriptor());
      if (packet.has_interned_data()) intern(packet.interned_data());
      if (packet.has_track_event()) event(packet.track_event(), packet.timestamp());
    }
    for (const auto& [track, open] : open_)
      EXPECT_TRUE(open.empty()) << "an open slice on " << track_names_[track];
    return std::move(decoded_);
  }

 private:
  void describe(const schema::TrackDescriptor& track) {
    EXPECT_TRUE(track_names_.emplace(track.uuid(), track.name()).second);
    EXPECT_EQ(track.unknown_fields(), "");
    if (track.has_process()) {
      decoded_.process = track.process().process_name();
      return;
    }
    EXPECT_TRUE(track_names_.contains(track.parent_uuid()));
    decoded_.tracks.push_back(track.name());
  }

  void intern(const schema::InternedData& names) {
    EXPECT_EQ(names.unknown_fields(), "");
    add_names(names.event_names(), events_);
    add_names(names.debug_annotation_names(), arguments_);
    add_names(names.debug_annotation_string_values(), texts_);
    for (const auto& location : names.source_locations())
      lines_[location.iid()] = location.line_number();
  }

  void event(const schema::TrackEvent& event, std::uint64_t at) {
    EXPECT_EQ(event.unknown_fields(), "");
    ASSERT_TRUE(track_names_.contains(event.track_uuid()));
    const std::string& track = track_names_[event.track_uuid()];
    std::uint64_t& latest = latest_[event.track_uuid()];
    EXPECT_GE(at, latest) << "on " << track;
    latest = at;
    auto& open = open_[event.track_uuid()];
    switch (event.type()) {
      case schema::TrackEvent::TYPE_SLICE_BEGIN:
        open.push_back(begin(event, track, at, open.size()));
        return;
      case schema::TrackEvent::TYPE_SLICE_END:
        ASSERT_FALSE(open.empty()) << "an end without a beginning on " << track;
        open.back().to = at;
        decoded_.slices.push_back(open.back());
        open.pop_back();
        return;
      case schema::TrackEvent::TYPE_COUNTER:
        decoded_.counts.push_back({track, at, event.counter_value()});
        return;
      default:
        FAIL() << "an event of type " << event.type();
    }
  }

  DecodedSlice begin(const schema::TrackEvent& event, const std::string& track, std::uint64_t at,
                     std::size_t depth) {
    DecodedSlice slice{.track = track,
                       .name = resolve(events_, event.name_iid()),
                       .from = at,
                       .depth = static_cast<std::uint32_t>(depth)};
    if (event.has_source_location_iid()) slice.line = lines_.at(event.source_location_iid());
    for (const auto& argument : event.debug_annotations()) {
      const std::string name = resolve(arguments_, argument.name_iid());
      if (argument.has_string_value_iid()) {
        slice.texts[name] = resolve(texts_, argument.string_value_iid());
      } else {
        slice.numbers[name] = argument.uint_value();
      }
    }
    return slice;
  }

  DecodedTrace decoded_;
  std::map<std::uint64_t, std::string> track_names_;
  Names events_, arguments_, texts_;
  std::map<std::uint64_t, std::uint32_t> lines_;
  std::map<std::uint64_t, std::vector<DecodedSlice>> open_;
  std::map<std::uint64_t, std::uint64_t> latest_;
};

}  // namespace

std::vector<DecodedSlice> DecodedTrace::on(const std::string& track) const {
  std::vector<DecodedSlice> found;
  for (const DecodedSlice& slice : slices)
    if (slice.track == track) found.push_back(slice);
  return found;
}

DecodedTrace decode_trace(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  schema::Trace trace;
  EXPECT_TRUE(trace.ParseFromIstream(&file)) << path << " is no trace";
  return Decoder().decode(trace);
}

}  // namespace plena
