// Constants of FP_MEM, each there once: kernels ask for the value they need.
#pragma once

#include <cstdint>
#include <vector>

#include "plena/compiler/emitter.h"
#include "plena/compiler/memory_plan.h"
#include "plena/config/data_type.h"

namespace plena {

class ConstantPool {
 public:
  /// Entries of FP_MEM from `first` on, of type `scalar`.
  ConstantPool(ElementType scalar, std::uint64_t first) : scalar_(scalar), first_(first) {}

  /// Loads `value`, rounded to the scalar type, into a register.
  void load(Emitter& emitter, Fp to, float value, std::string_view what);

  [[nodiscard]] std::uint64_t count() const { return entries_.size(); }
  /// Bit patterns, from `first` on.
  [[nodiscard]] const std::vector<std::uint32_t>& entries() const { return entries_; }

 private:
  ElementType scalar_;
  std::uint64_t first_;
  std::vector<std::uint32_t> entries_;
};

}  // namespace plena
