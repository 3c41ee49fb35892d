// The page of the report without its data, put into the program when it is built (page/).
#pragma once

#include <string>

namespace plena {

std::string page_before_data();
std::string page_after_data();

}  // namespace plena
