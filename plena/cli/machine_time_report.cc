#include "plena/cli/machine_time_report.h"

#include <fmt/format.h>

namespace plena {

namespace {

double share(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

// Of the whole run's cycles: multiply-adds and bytes against the peak, busy for the vector unit.
double array_utilisation(const TimingReport& report) {
  return share(static_cast<double>(report.roofline[Bound::Array]),
               static_cast<double>(report.total));
}
double hbm_utilisation(const TimingReport& report) {
  return share(report.bytes_per_cycle(), report.peak_bytes_per_cycle);
}
double vector_utilisation(const TimingReport& report) {
  const double busy =
      report.units
          ? static_cast<double>((*report.units)[static_cast<std::size_t>(Unit::Vector)].busy)
          : static_cast<double>(report.roofline[Bound::Vector]);
  return share(busy, static_cast<double>(report.total));
}

std::string decode_line(const MachineTime& time) {
  if (time.tokens == 0) return "no token after it\n";
  return fmt::format("then {:.0f} cycles a token, {:.0f} tokens/s, {:.0f} bytes of HBM a token\n",
                     *time.cycles_per_token(), time.tokens_per_second().value_or(0),
                     *time.bytes_per_token());
}

}  // namespace

std::string to_text(const MachineTime& time, const TimingReport& report) {
  std::string text = fmt::format(
      "on the machine ({}, {} MHz, memory {}): first token after {} cycles ({:.1f} us), {}",
      report.profile, report.clock_mhz, report.memory, time.first_token,
      1e6 * time.seconds(static_cast<double>(time.first_token)), decode_line(time));
  const Bound bound = report.roofline.binding();
  text += fmt::format(
      "array {:.1f} % of its peak, vector unit {:.1f} % busy, HBM {:.1f} % of its peak; "
      "{} is the binding bound, {:.1f} % of the cycles\n",
      100 * array_utilisation(report), 100 * vector_utilisation(report),
      100 * hbm_utilisation(report), bound_name(bound),
      100 * report.roofline.achieved(report.total));
  if (report.picojoules) {
    text += fmt::format("energy {:.3f} microjoules, {:.3f} a step\n", *report.picojoules * 1e-6,
                        *report.picojoules * 1e-6 / static_cast<double>(time.steps));
  }
  return text;
}

nlohmann::ordered_json to_json(const MachineTime& time, const TimingReport& report) {
  nlohmann::ordered_json json = {
      {"cycles", time.total},
      {"steps", time.steps},
      {"first_token_cycles", time.first_token},
      {"time_to_first_token_seconds", time.seconds(static_cast<double>(time.first_token))},
      {"tokens_after_the_first", time.tokens}};
  if (time.tokens != 0) {
    json["cycles_per_token"] = *time.cycles_per_token();
    json["bytes_per_token"] = *time.bytes_per_token();
    json["tokens_per_second"] = time.tokens_per_second().value_or(0);
  }
  json["array_utilisation"] = array_utilisation(report);
  json["vector_utilisation"] = vector_utilisation(report);
  json["hbm_utilisation"] = hbm_utilisation(report);
  if (report.picojoules)
    json["picojoules_per_step"] = *report.picojoules / static_cast<double>(time.steps);
  return json;
}

}  // namespace plena
