// An array of plain records that all start as zeros and take no memory until they are touched: one
// record a row of a Vector SRAM of millions of rows.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "plena/machine/sparse_memory.h"

namespace plena {

template <class T>
class LazyArray {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  LazyArray() = default;

  static Result<LazyArray> create(std::uint64_t count) {
    if (count > kMostBytes / sizeof(T)) {
      return fail(ErrorCode::Settings, "timing cannot keep track of {} rows of SRAM", count);
    }
    // One chunk: nobody asks which records were touched.
    auto memory = SparseMemory::reserve(count * sizeof(T), std::size_t{1} << 47);
    if (!memory) return tl::unexpected(std::move(memory).error());
    LazyArray array;
    array.memory_ = std::move(*memory);
    array.records_ = reinterpret_cast<T*>(array.memory_.writable(0, 0));
    return array;
  }

  T& operator[](std::uint64_t index) { return records_[index]; }
  const T& operator[](std::uint64_t index) const { return records_[index]; }

 private:
  static constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 46;

  SparseMemory memory_;
  T* records_ = nullptr;
};

}  // namespace plena
