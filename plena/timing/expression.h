// Integer expressions of timing profiles: cycles as a function of the machine's sizes.
//
// `9 + 2*BLEN`, `ceil_log2(VLEN)`, `10 + setting(VECTOR_ADD_CYCLES, 1)`. Parsed once, evaluated for
// every machine; division truncates; nothing overflows silently.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plena/base/error.h"
#include "plena/config/settings.h"

namespace plena {

/// What the names in an expression stand for.
struct CostNames {
  const Settings* settings = nullptr;  // BLEN, MLEN, HLEN, VLEN, H and the LATENCY entries
  std::int64_t lanes = 0;              // LANES: candidates of a V_TOPK
};

class CycleExpression {
 public:
  /// Operators + - * / %, parentheses, the names BLEN MLEN HLEN VLEN H LANES, and the functions
  /// min(a, b), max(a, b), ceil_div(a, b), ceil_log2(a) and setting(NAME, otherwise): the
  /// settings' LATENCY entry NAME, or `otherwise` where it is absent or 0. `place` is where the
  /// text's first character stands; an error points into it.
  static Result<CycleExpression> parse(std::string_view text, const SourcePlace& place);

  /// An overflow, a division by 0 or a logarithm of less than 1 is an error at the expression.
  [[nodiscard]] Result<std::int64_t> evaluate(const CostNames& names) const;

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] const SourcePlace& place() const { return place_; }

 private:
  friend class CycleExpressionParser;

  enum class Step : std::uint8_t {
    Number,
    Name,     // value: index into kNames
    Setting,  // value: index into latency_names(); the default is on the stack
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Negate,
    Min,
    Max,
    CeilDiv,
    CeilLog2,
  };
  struct Postfix {
    Step step{};
    std::int64_t value = 0;
  };

  [[nodiscard]] tl::unexpected<Error> error(std::string message) const;

  std::vector<Postfix> steps_;  // in the order of evaluation on a stack
  std::string text_;
  SourcePlace place_;
};

}  // namespace plena
