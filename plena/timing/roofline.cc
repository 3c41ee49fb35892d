#include "plena/timing/roofline.h"

#include <algorithm>

namespace plena {

std::string_view bound_name(Bound bound) {
  switch (bound) {
    case Bound::Hbm:
      return "HBM bandwidth";
    case Bound::Array:
      return "array";
    case Bound::Vector:
      return "vector unit";
    case Bound::Issue:
      return "issue";
  }
  return "";
}

Bound Roofline::binding() const {
  return static_cast<Bound>(std::max_element(cycles.begin(), cycles.end()) - cycles.begin());
}

double Roofline::achieved(Cycle total) const {
  if (total == 0) return 0;
  return static_cast<double>((*this)[binding()]) / static_cast<double>(total);
}

Roofline make_roofline(const Work& work, const Settings& settings, const PeakRate& peak,
                       bool one_issue_a_cycle) {
  const std::uint64_t multipliers = std::uint64_t{settings.blen} * settings.mlen;
  Roofline roofline{.work = work};
  roofline.cycles[static_cast<std::size_t>(Bound::Hbm)] =
      peak.cycles_for(work.hbm_bytes / kBurstBytes);
  roofline.cycles[static_cast<std::size_t>(Bound::Array)] =
      (work.multiply_adds + multipliers - 1) / multipliers;
  roofline.cycles[static_cast<std::size_t>(Bound::Vector)] = work.vector_rows;
  roofline.cycles[static_cast<std::size_t>(Bound::Issue)] =
      one_issue_a_cycle ? work.instructions : 0;
  return roofline;
}

}  // namespace plena
