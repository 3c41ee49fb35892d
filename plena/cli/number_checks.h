// Checks of numbers on the command line, for CLI::Option::check(). CLI11's own NonNegativeNumber
// lets a NaN pass and spells out the largest double in its message.
#pragma once

#include <string>

namespace plena {

/// Empty for a number of at least 0, else what is wrong with it.
std::string check_number_from_zero(const std::string& text);

}  // namespace plena
