// `MEM=FILE[@ADDR[:COUNT]]`: which elements of which memory, and the file they go to or come from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "plena/base/error.h"
#include "plena/machine/machine.h"

namespace plena {

struct MemorySpec {
  MemoryKind memory{};
  std::string file;
  std::uint64_t first = 0;             // element; a byte of HBM
  std::optional<std::uint64_t> count;  // elements; dumps only

  /// Whether the file's name says that it is a NumPy array; other files are raw little-endian.
  [[nodiscard]] bool is_npy() const { return file.ends_with(".npy"); }
};

/// The argument of --dump. ADDR and COUNT are decimal or 0x; an `@` belongs to the file's name
/// where neither a digit nor a `:` follows it, or where a `/` follows later.
Result<MemorySpec> parse_memory_spec(std::string_view text);

/// The argument of --load and --expect, where the file decides the count: COUNT is an error.
Result<MemorySpec> parse_memory_source(std::string_view text);

}  // namespace plena
