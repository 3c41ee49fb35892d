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
                       bool one_of_each_unit) {
  const std::uint64_t multipliers = std::uint64_t{settings.blen} * settings.mlen;
  Roofline roofline{.work = work};
  const auto bound = [&](Bound which) -> Cycle& {
    return roofline.cycles[static_cast<std::size_t>(which)];
  };
  bound(Bound::Hbm) = peak.cycles_for(work.hbm_bytes / kBurstBytes);
  if (!one_of_each_unit) return roofline;
  bound(Bound::Array) = (work.multiply_adds + multipliers - 1) / multipliers;
  bound(Bound::Vector) = work.vector_rows;
  bound(Bound::Issue) = work.instructions;
  return roofline;
}

}  // namespace plena
