// Memory a kernel needs for the length of one call, kept by the thread for the next one.
#pragma once

#include <cstddef>
#include <vector>

namespace plena {

struct alignas(64) CacheLine {
  std::byte bytes[64];
};

/// At least `bytes` bytes, aligned to a cache line, with what the last user left in them. One area
/// a thread and Tag: a kernel that holds one must not call another that asks for the same.
template <class Tag>
void* thread_scratch(std::size_t bytes) {
  thread_local std::vector<CacheLine> lines;
  const std::size_t needed = bytes / sizeof(CacheLine) + 1;
  if (lines.size() < needed) lines.resize(needed);
  return lines.data();
}

}  // namespace plena
