#include "plena/observe/statistics.h"

#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plena/machine/work.h"

namespace plena {

namespace {

constexpr std::array kClasses = {InstructionClass::Matrix, InstructionClass::Vector,
                                 InstructionClass::Scalar, InstructionClass::Memory,
                                 InstructionClass::Control};

// V_TOPK chooses among this many lanes (semantics 8).
constexpr std::uint64_t kTopkLanes = 32;
constexpr std::uint64_t kTopkLanesWide = 128;

template <class Append>
void append_line(Append&& out, std::string_view name, std::uint64_t count,
                 std::string_view rest = {}) {
  fmt::format_to(out, "{:<20} {:>16}{}\n", name, count, rest);
}

}  // namespace

// Only counts here; what follows from them is worked out when somebody asks.
void Statistics::retired(const Machine& /*machine*/, std::uint64_t /*pc*/,
                         const Instruction& instruction) {
  ++counts_[static_cast<std::size_t>(instruction.op)];
  if (instruction.op == Op::V_TOPK && instruction.select != 0) ++wide_topk_;
}

void Statistics::moved_row(const HbmRow& row) {
  if (row.write) {
    traffic_.elements_written += row.element_bytes;
    traffic_.scales_written += row.scale_bytes;
  } else {
    traffic_.elements_read += row.element_bytes;
    traffic_.scales_read += row.scale_bytes;
  }
}

std::uint64_t Statistics::count(InstructionClass instruction_class) const {
  std::uint64_t sum = 0;
  for (const auto& row : instruction_table())
    if (row.instruction_class == instruction_class) sum += count(row.op);
  return sum;
}

std::uint64_t Statistics::total() const {
  return std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0});
}

std::uint64_t Statistics::multiply_adds() const {
  std::uint64_t sum = 0;
  for (const auto& row : instruction_table())
    sum += count(row.op) * multiply_adds_of(row.op, settings_, dialect_);
  return sum;
}

std::uint64_t Statistics::lane_operations() const {
  const std::uint64_t topk = count(Op::V_TOPK);
  return (count(InstructionClass::Vector) - topk) * settings_.vlen +
         (topk - wide_topk_) * kTopkLanes + wide_topk_ * kTopkLanesWide;
}

std::string to_text(const Statistics& statistics) {
  std::string text;
  const auto out = std::back_inserter(text);
  append_line(out, "instructions", statistics.total());
  for (const InstructionClass instruction_class : kClasses) {
    const std::uint64_t in_class = statistics.count(instruction_class);
    if (in_class == 0) continue;
    append_line(out, fmt::format("  {}", class_name(instruction_class)), in_class,
                fmt::format("  {:5.1f} %", 100.0 * static_cast<double>(in_class) /
                                               static_cast<double>(statistics.total())));
    for (const auto& row : instruction_table()) {
      if (row.instruction_class == instruction_class && statistics.count(row.op) != 0)
        append_line(out, fmt::format("    {}", row.mnemonic), statistics.count(row.op));
    }
  }
  const HbmTraffic& traffic = statistics.traffic();
  append_line(out, "multiply-adds", statistics.multiply_adds());
  append_line(out, "vector lanes", statistics.lane_operations());
  append_line(
      out, "HBM bytes read", traffic.elements_read + traffic.scales_read,
      fmt::format("  ({} of elements, {} of scales)", traffic.elements_read, traffic.scales_read));
  append_line(out, "HBM bytes written", traffic.elements_written + traffic.scales_written,
              fmt::format("  ({} of elements, {} of scales)", traffic.elements_written,
                          traffic.scales_written));
  return text;
}

nlohmann::ordered_json to_json(const Statistics& statistics) {
  nlohmann::ordered_json classes;
  nlohmann::ordered_json mnemonics = nlohmann::ordered_json::object();
  for (const InstructionClass instruction_class : kClasses)
    classes[class_name(instruction_class)] = statistics.count(instruction_class);
  for (const auto& row : instruction_table())
    if (statistics.count(row.op) != 0) mnemonics[row.mnemonic] = statistics.count(row.op);
  const HbmTraffic& traffic = statistics.traffic();
  return {{"instructions", statistics.total()},
          {"by_class", classes},
          {"by_mnemonic", mnemonics},
          {"multiply_adds", statistics.multiply_adds()},
          {"vector_lanes", statistics.lane_operations()},
          {"hbm_bytes",
           {{"elements_read", traffic.elements_read},
            {"scales_read", traffic.scales_read},
            {"elements_written", traffic.elements_written},
            {"scales_written", traffic.scales_written}}}};
}

}  // namespace plena
