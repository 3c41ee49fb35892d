// The text of profiles/*.toml, put into the program when it is built.
#pragma once

#include <string_view>

namespace plena {

/// The text of a built-in profile, or nothing for a name that is none.
std::string_view built_in_profile_text(std::string_view name);

}  // namespace plena
