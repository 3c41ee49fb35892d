#include "plena/dram/stream_case.h"

#include <charconv>
#include <exception>

#include <nlohmann/json.hpp>

#include "plena/base/files.h"

namespace plena::dram {
namespace {

using Json = nlohmann::json;

// Enough for any stream worth simulating; keeps products of the offer rule far from overflow.
constexpr std::uint64_t kMaxRequests = std::uint64_t{1} << 32;
constexpr std::uint64_t kMaxAddress = std::uint64_t{1} << 46;
constexpr std::uint64_t kMaxWriteModulus = 1'000'000;

// Reads the keys of one case. The first thing that is wrong stays in `error_`, and every later
// look-up gives its default.
class CaseReader {
 public:
  CaseReader(const Json& json, std::string path, std::string id)
      : json_(json), path_(std::move(path)), id_(std::move(id)) {}

  Result<StreamCase> read();

 private:
  void wrong(std::string_view key, std::string_view what) {
    if (!error_.message.empty()) return;
    error_.code = ErrorCode::Format;
    error_.message = fmt::format("case '{}': '{}' {}", id_, key, what);
    error_.place.file = path_;
  }

  // A member of an object, or null when it is absent.
  static const Json& member(const Json& object, const char* key) {
    static const Json kNull;
    const auto found = object.find(key);
    return found == object.end() ? kNull : *found;
  }

  std::uint64_t unsigned_value(const Json& value, std::string_view key, std::uint64_t low,
                               std::uint64_t high) {
    if (!value.is_number_unsigned()) {
      wrong(key, "is not a whole number from 0 up");
      return low;
    }
    const auto number = value.get<std::uint64_t>();
    if (number < low || number > high) {
      wrong(key, fmt::format("is {}; possible: {} to {}", number, low, high));
      return low;
    }
    return number;
  }

  // `part` is the object's own key, for messages.
  std::uint64_t number(const Json& object, const char* key, std::uint64_t otherwise,
                       std::uint64_t low, std::uint64_t high, std::string_view part = {}) {
    const Json& value = member(object, key);
    if (value.is_null()) return otherwise;
    const std::string full = part.empty() ? std::string(key) : fmt::format("{}.{}", part, key);
    return unsigned_value(value, full, low, high);
  }

  std::string text(const Json& object, const char* key, std::string_view otherwise) {
    const Json& value = member(object, key);
    if (value.is_null()) return std::string(otherwise);
    if (!value.is_string()) {
      wrong(key, "is not a string");
      return std::string(otherwise);
    }
    return value.get<std::string>();
  }

  // An object that must be there.
  const Json& object(const char* key) {
    static const Json kEmpty = Json::object();
    const Json& value = member(json_, key);
    if (value.is_object()) return value;
    wrong(key, value.is_null() ? "is missing" : "is not an object");
    return kEmpty;
  }

  template <class T>
  T named(Result<T> found, std::string_view key, T otherwise) {
    if (found) return *found;
    wrong(key, fmt::format(": {} ({})", found.error().message, found.error().hint));
    return otherwise;
  }

  void read_memory(StreamCase& stream);
  void read_trace(StreamCase& stream);
  void read_write_rule(StreamCase& stream);
  void read_offer_rule(StreamCase& stream);
  void read_checksum(StreamCase& stream);
  void read_expectation(StreamCase& stream);
  void check_addresses(const StreamCase& stream);

  const Json& json_;
  std::string path_;
  std::string id_;
  Error error_;
};

Result<StreamCase> CaseReader::read() {
  StreamCase stream;
  stream.id = id_;
  stream.group = text(json_, "group", "");
  stream.requests = number(json_, "n", 0, 1, kMaxRequests);
  if (stream.requests == 0) wrong("n", "is missing");
  if (!member(json_, "outstanding").is_null())
    stream.outstanding = number(json_, "outstanding", 1, 1, kMaxRequests);
  stream.unit = static_cast<std::uint32_t>(number(json_, "unit", 1, 1, 1 << 20));
  read_memory(stream);
  read_trace(stream);
  read_write_rule(stream);
  read_offer_rule(stream);
  read_checksum(stream);
  read_expectation(stream);
  if (error_.message.empty()) check_addresses(stream);
  if (!error_.message.empty()) return tl::unexpected<Error>(error_);
  return stream;
}

void CaseReader::read_memory(StreamCase& stream) {
  DramSettings& memory = stream.memory;
  memory.preset = named(find_dram_preset(text(json_, "device", kDefaultPreset)), "device",
                        dram_presets().front());
  memory.channels = static_cast<std::uint32_t>(number(json_, "channels", 1, 1, 256));
  memory.interleave_bytes =
      static_cast<std::uint32_t>(number(json_, "interleave_bytes", 0, 0, 1 << 30));
  memory.map = named(find_map(text(json_, "map", "mop")), "map", MapKind::Mop);
  memory.refresh =
      named(find_refresh_mode(text(json_, "refresh", "all-bank")), "refresh", RefreshMode::AllBank);
  memory.read_queue = static_cast<std::uint32_t>(number(json_, "read_queue", 32, 1, 4096));
  memory.write_queue = static_cast<std::uint32_t>(number(json_, "write_queue", 32, 1, 4096));
  const std::string scheduler = text(json_, "scheduler", "FRFCFS");
  stream.row_hit_scheduler = scheduler == "FRFCFS-RowHit";
  if (scheduler != "FRFCFS" && !stream.row_hit_scheduler)
    wrong("scheduler", "is neither FRFCFS nor FRFCFS-RowHit");
}

void CaseReader::read_trace(StreamCase& stream) {
  const Json& trace = object("trace");
  const std::string kind = text(trace, "kind", "");
  if (kind == "lcg") {
    stream.trace.kind = StreamTrace::Kind::Random;
    stream.trace.seed = number(trace, "seed", 0, 0, ~std::uint64_t{0}, "trace");
    stream.trace.bits = static_cast<std::uint32_t>(number(trace, "bits", 0, 1, 31, "trace"));
    if (stream.trace.bits == 0) wrong("trace.bits", "is missing");
    return;
  }
  if (kind != "counters") return wrong("trace.kind", "is neither counters nor lcg");
  stream.trace.base = number(trace, "base", 0, 0, kMaxAddress, "trace");
  const Json& counters = member(trace, "counters");
  if (!counters.is_array()) return wrong("trace.counters", "is not an array");
  for (const Json& counter : counters) {
    if (!counter.is_array() || counter.size() != 3)
      return wrong("trace.counters", "holds something else than triples [d, m, step]");
    stream.trace.counters.push_back(
        {.divisor = unsigned_value(counter[0], "trace.counters", 1, kMaxRequests),
         .modulus = unsigned_value(counter[1], "trace.counters", 0, kMaxRequests),
         .step = unsigned_value(counter[2], "trace.counters", 0, kMaxAddress)});
  }
}

void CaseReader::read_write_rule(StreamCase& stream) {
  if (member(json_, "write").is_null()) return;
  const Json& write = object("write");
  const std::string rule = text(write, "rule", "never");
  if (rule == "never") return;
  if (rule == "always") {
    stream.write.writes = {true};
    return;
  }
  if (rule != "mod") return wrong("write.rule", "is none of never, always, mod");
  stream.write.modulus = number(write, "m", 0, 1, kMaxWriteModulus, "write");
  if (stream.write.modulus == 0) return wrong("write.m", "is missing");
  stream.write.writes.assign(stream.write.modulus, false);
  const Json& set = member(write, "set");
  if (!set.is_array()) return wrong("write.set", "is not an array");
  for (const Json& remainder : set)
    stream.write.writes[unsigned_value(remainder, "write.set", 0, stream.write.modulus - 1)] = true;
}

void CaseReader::read_offer_rule(StreamCase& stream) {
  if (member(json_, "when").is_null()) return;
  const Json& when = object("when");
  const std::string rule = text(when, "rule", "asap");
  if (rule == "asap") return;
  if (rule != "periodic") return wrong("when.rule", "is neither asap nor periodic");
  stream.offer = {.as_soon_as_possible = false,
                  .group = number(when, "group", 1, 1, kMaxRequests, "when"),
                  .numerator = number(when, "num", 1, 0, 1'000'000'000, "when"),
                  .denominator = number(when, "den", 1, 1, 1'000'000'000, "when")};
}

void CaseReader::read_checksum(StreamCase& stream) {
  const std::string digits = text(json_, "trace_fnv1a64", "");
  if (digits.empty()) return;
  std::uint64_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, value, 16);
  if (parsed.ec != std::errc{} || parsed.ptr != end)
    return wrong("trace_fnv1a64", "is not a hexadecimal number");
  stream.checksum = value;
}

void CaseReader::read_expectation(StreamCase& stream) {
  const Json& result = member(json_, "result");
  if (result.is_null()) return;
  if (!result.is_object()) return wrong("result", "is not an object");
  const Json& total = member(result, "total_cycles");
  if (!total.is_number() || total.get<double>() <= 0)
    return wrong("result.total_cycles", "is not a number above 0");
  StreamExpectation expected{.total_ck = total.get<double>()};
  const auto mean = [&](const char* latency) -> std::optional<double> {
    const Json& figures = member(result, latency);
    if (figures.is_null()) return std::nullopt;
    const Json& value = figures.is_object() ? member(figures, "mean") : figures;
    if (value.is_number()) return value.get<double>();
    wrong(latency, "has no number 'mean'");
    return std::nullopt;
  };
  expected.mean_read_ck = mean("read_latency");
  expected.mean_write_ck = mean("write_latency");
  stream.expected = expected;
}

void CaseReader::check_addresses(const StreamCase& stream) {
  auto memory = Controller::make(stream.memory);
  if (!memory) return wrong("channels", ": " + memory.error().message);
  // The highest address of each counter, each no more than 2^32 * 2^46.
  unsigned __int128 highest = stream.trace.base;
  for (const AddressCounter& counter : stream.trace.counters) {
    std::uint64_t most = (stream.requests - 1) / counter.divisor;
    if (counter.modulus != 0) most = std::min(most, counter.modulus - 1);
    highest += static_cast<unsigned __int128>(most) * counter.step;
  }
  if (stream.trace.kind == StreamTrace::Kind::Random)
    highest = (std::uint64_t{32} << stream.trace.bits) - 1;
  if (highest >= memory->capacity_bytes())
    wrong("trace", fmt::format("leaves the memory of {} bytes", memory->capacity_bytes()));
}

}  // namespace

Result<std::vector<StreamCase>> load_stream_cases(const std::string& path) {
  auto text = read_text(path);
  if (!text) return forward_error(text);
  return parse_stream_cases(*text, path);
}

Result<std::vector<StreamCase>> parse_stream_cases(std::string_view text, const std::string& path) {
  Json json;
  try {
    json = Json::parse(text);
  } catch (const std::exception& problem) {
    return fail(ErrorCode::Format, "{}: not JSON: {}", path, problem.what());
  }
  const bool many = json.is_object() && json.contains("cases");
  if (!json.is_object() || (many && !json["cases"].is_array())) {
    return fail_with_hint(ErrorCode::Format, fmt::format("{}: no request streams", path),
                          "expected an object with an array 'cases', or one case");
  }
  const Json cases = many ? json["cases"] : Json::array({json});
  std::vector<StreamCase> streams;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Json& one = cases[i];
    if (!one.is_object())
      return fail(ErrorCode::Format, "{}: case number {} is not an object", path, i);
    const auto id = one.find("id");
    const bool named = id != one.end() && id->is_string();
    auto stream =
        CaseReader(one, path, named ? id->get<std::string>() : fmt::format("#{}", i)).read();
    if (!stream) return forward_error(stream);
    streams.push_back(std::move(*stream));
  }
  return streams;
}

StreamRequests::StreamRequests(const StreamCase& stream)
    : stream_(stream), random_(stream.trace.seed) {}

std::uint64_t StreamRequests::counted_address() const {
  std::uint64_t address = stream_.trace.base;
  for (const AddressCounter& counter : stream_.trace.counters) {
    const std::uint64_t count = k_ / counter.divisor;
    address += counter.step * (counter.modulus == 0 ? count : count % counter.modulus);
  }
  return address;
}

Request StreamRequests::next() {
  Request request{.id = k_, .is_write = stream_.write.writes[k_ % stream_.write.modulus]};
  if (stream_.trace.kind == StreamTrace::Kind::Counters) {
    request.address = counted_address();
  } else {
    // Knuth's MMIX constants.
    random_ = random_ * 6364136223846793005U + 1442695040888963407U;
    request.address = 32 * (random_ >> 33 & ((std::uint64_t{1} << stream_.trace.bits) - 1));
  }
  ++k_;
  return request;
}

std::uint64_t StreamRequests::offered_ck(std::uint64_t k) const {
  const OfferRule& offer = stream_.offer;
  if (offer.as_soon_as_possible) return 0;
  return k / offer.group * offer.numerator / offer.denominator;
}

std::uint64_t StreamRequests::checksum(const StreamCase& stream) {
  StreamRequests requests(stream);
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (std::uint64_t k = 0; k < stream.requests; ++k) {
    const Request request = requests.next();
    std::uint64_t word = 2 * request.address + (request.is_write ? 1 : 0);
    for (int byte = 0; byte < 8; ++byte, word >>= 8) hash = (hash ^ (word & 0xFF)) * 0x100000001b3U;
  }
  return hash;
}

}  // namespace plena::dram
