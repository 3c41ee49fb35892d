// An image small enough to follow on paper, for tests of what is around images: a Markov chain
// whose logits are rows of a table, one row a token, another table at odd positions.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string_view>

#include "plena/asm/assembler.h"
#include "plena/compiler/image.h"

namespace plena::testing {

inline constexpr std::uint32_t kToyVocab = 4;
using ToyTable = std::array<std::array<float, kToyVocab>, kToyVocab>;  // [token][next token]

inline constexpr std::string_view kToyProgram = R"(; a Markov chain
  S_LD_INT   gp1, gp0, 0         ; token
  S_LD_INT   gp2, gp0, 2         ; VLEN
  S_MUL_INT  gp1, gp1, gp2       ; its row
  S_LD_INT   gp2, gp0, 1         ; first row of the table
  S_ADD_INT  gp1, gp1, gp2
  S_ADDI_INT gp3, gp0, 2 * VLEN
  S_MAP_V_FP gp3, gp1, 0
)";

/// The program copies row `token` of the table the position's parity picks from FP_MEM to Vector
/// SRAM, where the logits are read. All types are fp32, so that logits are the table's values.
inline Image toy_image(const ToyTable& even, const ToyTable& odd) {
  constexpr std::uint32_t kVlen = 64;
  Image image;
  image.settings.vector_sram_type = DataType::plain(kFp32);
  image.settings.scalar_fp = DataType::plain(kFp32);
  for (const ToyTable* table : {&even, &odd}) {
    for (const auto& row : *table) {
      for (const float logit : row) image.fp_mem.push_back(std::bit_cast<std::uint32_t>(logit));
      image.fp_mem.resize(image.fp_mem.size() + kVlen - kToyVocab);
    }
  }
  image.int_mem = {0, 0, kVlen};
  image.assembly = kToyProgram;
  image.program =
      assemble(kToyProgram, {"toy.asm", image.dialect, integer_symbols(image.settings)}).program;
  image.hbm = {{"first", 64, {1, 2, 3}}, {"second", std::uint64_t{1} << 33, {4}}};
  image.manifest.model = "toy";
  image.manifest.vocab = kToyVocab;
  image.manifest.context = 6;
  image.manifest.token_address = 0;
  image.manifest.position_inputs = {
      {.name = "table", .address = 1, .modulo = 2, .multiply = kToyVocab * kVlen}};
  image.manifest.logits_address = 2 * kVlen;
  image.tokenizer = {1, 0, 0, 0};
  return image;
}

}  // namespace plena::testing
