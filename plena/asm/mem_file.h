// `.mem` files: one word a line as 0x%08X. Readers take any white space and an optional 0x
// (semantics 2).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plena/base/error.h"

namespace plena {

/// The words of a file, or the first token that is none, with line and column.
Result<std::vector<std::uint32_t>> read_mem_file(const std::string& path);

/// The same for text at hand; `source_name` is what errors call it.
Result<std::vector<std::uint32_t>> parse_mem(std::string_view text, const std::string& source_name);

/// The text of a `.mem` file.
std::string mem_text(std::span<const std::uint32_t> words);

/// The same, handed to `sink` in pieces.
Status write_mem(std::span<const std::uint32_t> words,
                 const std::function<Status(std::string_view)>& sink);

}  // namespace plena
