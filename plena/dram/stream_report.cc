#include "plena/dram/stream_report.h"

#include <cmath>

namespace plena::dram {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kPercentiles[] = {0.50, 0.95, 0.99};

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

double rounded(double value, int digits) {
  const double scale = std::pow(10, digits);
  return std::round(value * scale) / scale;
}

RowCounts all_rows(const ChannelStatistics& statistics) {
  const RowCounts& reads = statistics.reads().rows;
  const RowCounts& writes = statistics.writes().rows;
  return {.hits = reads.hits + writes.hits,
          .misses = reads.misses + writes.misses,
          .conflicts = reads.conflicts + writes.conflicts};
}

std::string latency_line(const char* what, const LatencyHistogram& latency,
                         const StreamResult& result) {
  if (latency.count() == 0) return {};
  const auto ck = [&](Tick ticks) { return result.in_ck(static_cast<double>(ticks)); };
  return fmt::format("  {:<11} {}, latency mean {:.1f}, 50 % {}, 95 % {}, 99 % {}, max {} cycles\n",
                     what, latency.count(), result.in_ck(latency.mean()),
                     ck(latency.percentile(kPercentiles[0])),
                     ck(latency.percentile(kPercentiles[1])),
                     ck(latency.percentile(kPercentiles[2])), ck(latency.max()));
}

std::string comparison_line(const StreamExpectation& expected, const StreamComparison& comparison) {
  std::string line = fmt::format("  {:<11} {} cycles ({:+.2f} %)", "expected", expected.total_ck,
                                 comparison.total_percent);
  if (comparison.mean_read_percent) {
    line += fmt::format(", mean read latency {} ({:+.2f} %)", expected.mean_read_ck.value_or(0),
                        *comparison.mean_read_percent);
  }
  return line + "\n";
}

Json latency_json(const LatencyHistogram& latency, const StreamResult& result) {
  const auto ck = [&](Tick ticks) { return result.in_ck(static_cast<double>(ticks)); };
  return {{"count", latency.count()},
          {"mean", rounded(result.in_ck(latency.mean()), 3)},
          {"min", ck(latency.min())},
          {"p50", ck(latency.percentile(kPercentiles[0]))},
          {"p95", ck(latency.percentile(kPercentiles[1]))},
          {"p99", ck(latency.percentile(kPercentiles[2]))},
          {"max", ck(latency.max())}};
}

Json result_json(const StreamResult& result) {
  const ChannelStatistics& statistics = result.statistics;
  const RowCounts rows = all_rows(statistics);
  Json json = {
      {"total_cycles", result.total_ck()},
      {"gbps", rounded(result.gbps(), 4)},
      {"peak_gbps", rounded(result.peak_gbps, 4)},
      {"requests_per_cycle", rounded(static_cast<double>(result.requests) / result.total_ck(), 5)}};
  const auto add_latency = [&](const char* key, const LatencyHistogram& latency) {
    if (latency.count() != 0) json[key] = latency_json(latency, result);
  };
  add_latency("read_latency", statistics.reads().latency);
  add_latency("write_latency", statistics.writes().latency);
  add_latency("unit_latency", result.unit_latency);
  add_latency("sojourn_from_offer", result.sojourn);
  json["row"] = {{"hits", rows.hits}, {"misses", rows.misses}, {"conflicts", rows.conflicts}};
  json["forwarded_reads"] = statistics.reads().from_queue;
  json["coalesced_writes"] = statistics.writes().from_queue;
  json["commands"] = Json::object();
  for (std::size_t i = 0; i < kCommandCount; ++i)
    if (statistics.commands[i] != 0)
      json["commands"][name(static_cast<Command>(i))] = statistics.commands[i];
  json["mean_read_queue"] = rounded(result.mean_queue(statistics.reads()), 3);
  json["mean_write_queue"] = rounded(result.mean_queue(statistics.writes()), 3);
  return json;
}

}  // namespace

std::string text_report(const StreamCase& stream, const StreamResult& result,
                        const std::optional<StreamComparison>& comparison) {
  const ChannelStatistics& statistics = result.statistics;
  const RowCounts rows = all_rows(statistics);
  const std::uint64_t classified = rows.hits + rows.misses + rows.conflicts;
  std::string text = stream.id;
  if (comparison) text += comparison->passed ? ": passed" : ": FAILED";
  text += fmt::format("\n  {:<11} {:.2f} of {:.2f} GB/s ({:.1f} %), {} cycles\n", "bandwidth",
                      result.gbps(), result.peak_gbps, 100 * result.gbps() / result.peak_gbps,
                      result.total_ck());
  text += latency_line("reads", statistics.reads().latency, result);
  text += latency_line("writes", statistics.writes().latency, result);
  text += latency_line("units", result.unit_latency, result);
  text += latency_line("from offer", result.sojourn, result);
  text += fmt::format("  {:<11} {:.1f} % hits: {} hits, {} misses, {} conflicts\n", "rows",
                      share(rows.hits, classified), rows.hits, rows.misses, rows.conflicts);
  text += fmt::format("  {:<11} {:.2f} reads of {}, {:.2f} writes of {} on average\n", "queues",
                      result.mean_queue(statistics.reads()), stream.memory.read_queue,
                      result.mean_queue(statistics.writes()), stream.memory.write_queue);
  if (comparison && stream.expected) text += comparison_line(*stream.expected, *comparison);
  return text;
}

Json json_report(const StreamCase& stream, const StreamResult& result,
                 const std::optional<StreamComparison>& comparison) {
  Json json = {{"id", stream.id},
               {"device", stream.memory.preset.name},
               {"channels", stream.memory.channels},
               {"map", name(stream.memory.map)},
               {"refresh", name(stream.memory.refresh)},
               {"n", stream.requests},
               {"result", result_json(result)}};
  if (!comparison) return json;
  Json& compared = json["comparison"];
  compared = {{"passed", comparison->passed},
              {"total_cycles_percent", rounded(comparison->total_percent, 4)}};
  if (comparison->mean_read_percent)
    compared["mean_read_latency_percent"] = rounded(*comparison->mean_read_percent, 4);
  return json;
}

}  // namespace plena::dram
