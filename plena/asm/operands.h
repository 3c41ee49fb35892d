// One operand's text to the number in its field, or why it has none.
#pragma once

#include <string_view>

#include <tl/expected.hpp>

#include "plena/asm/symbols.h"
#include "plena/asm/syntax_error.h"
#include "plena/isa/dialect.h"
#include "plena/isa/instruction.h"

namespace plena {

class OperandParser {
 public:
  OperandParser(const Dialect& dialect, const SymbolTable& symbols)
      : dialect_(dialect), symbols_(symbols) {}

  [[nodiscard]] tl::expected<std::uint32_t, Fault> parse(const InstructionRow& row,
                                                         const Operand& operand,
                                                         std::string_view text) const;

  /// gp0 … gp15.
  [[nodiscard]] tl::expected<std::uint32_t, Fault> gp_register(std::string_view text) const;

  /// An expression's value from 0 to `largest`; `advice` is the hint when it lies outside.
  [[nodiscard]] tl::expected<std::uint32_t, Fault> immediate(std::string_view text,
                                                             std::uint32_t largest,
                                                             std::string_view advice) const;

 private:
  [[nodiscard]] tl::expected<std::uint32_t, Fault> mask(std::string_view text) const;
  [[nodiscard]] tl::expected<std::uint32_t, Fault> flag(const Operand& operand,
                                                        std::string_view text) const;
  [[nodiscard]] tl::expected<std::uint32_t, Fault> row_stride(const InstructionRow& row,
                                                              std::string_view text) const;

  const Dialect& dialect_;
  const SymbolTable& symbols_;
};

}  // namespace plena
