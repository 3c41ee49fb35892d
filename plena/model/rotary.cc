#include "plena/model/rotary.h"

#include <cmath>

namespace plena {

RotaryTable plain_rotary(double theta, std::uint32_t width) {
  RotaryTable table;
  for (std::uint32_t pair = 0; pair < width / 2; ++pair) {
    table.inverse_frequency.push_back(std::pow(theta, -2.0 * pair / width));
  }
  return table;
}

}  // namespace plena
