// Speed of the assembler and its relatives, in bytes of text a second.
#include <random>
#include <string>

#include <benchmark/benchmark.h>

#include "plena/asm/assembler.h"
#include "plena/asm/disassembler.h"
#include "plena/asm/formatter.h"
#include "plena/asm/mem_file.h"

namespace plena {
namespace {

constexpr std::size_t kTextBytes = std::size_t{16} << 20;

// The mix of a compiled decoder: half of it address arithmetic, the rest vector, matrix and scalar
// work; `comments` puts one behind every fourth line, `expressions` computes half the immediates.
std::string program_text(bool comments, bool expressions) {
  std::mt19937 random(1);
  const auto gp = [&] { return 1 + random() % 15; };
  const auto fp = [&] { return 1 + random() % 7; };
  std::string text;
  text.reserve(kTextBytes + 128);
  while (text.size() < kTextBytes) {
    switch (random() % 10) {
      case 0:
        text += fmt::format("V_MUL_VV gp{}, gp{}, gp{}, 0", gp(), gp(), gp());
        break;
      case 1:
        text += fmt::format("V_ADD_VF gp{}, gp{}, f{}, 0", gp(), gp(), fp());
        break;
      case 2:
        text += fmt::format("M_MM 0, gp{}, gp{}", gp(), gp());
        break;
      case 3:
        text += fmt::format("S_ADD_FP f{}, f{}, f{}", fp(), fp(), fp());
        break;
      case 4:
        text += fmt::format("M_MM_WO gp{}, 0, {}", gp(), random() % 64);
        break;
      default:
        if (expressions && random() % 2 == 0) {
          text += fmt::format("S_ADDI_INT gp{}, gp{}, {} * VLEN + (MLEN >> 2)", gp(), gp(),
                              random() % 1000);
        } else {
          text += fmt::format("S_ADDI_INT gp{}, gp{}, {}", gp(), gp(), random() % 4096);
        }
    }
    if (comments && random() % 4 == 0) text += "  ; row of the tile";
    text += '\n';
  }
  return text;
}

AssemblyOptions options() {
  return {"bench.asm", {}, {{"MLEN", 64}, {"VLEN", 64}}};
}

void count_bytes(benchmark::State& state, std::size_t bytes) {
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * bytes));
}

void assemble_text(benchmark::State& state, bool comments, bool expressions) {
  const std::string text = program_text(comments, expressions);
  for (auto _ : state) {
    Assembler assembler(options());
    assembler.expect_bytes(text.size());
    assembler.feed(text);
    const Assembly assembly = assembler.finish();
    if (!assembly.ok()) state.SkipWithError("the text does not assemble");
    benchmark::DoNotOptimize(assembly.program.words.data());
  }
  count_bytes(state, text.size());
}
BENCHMARK_CAPTURE(assemble_text, compiled, false, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(assemble_text, commented, true, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(assemble_text, expressions, true, true)->Unit(benchmark::kMillisecond);

void disassemble_words(benchmark::State& state) {
  const auto words = assemble(program_text(false, false), options()).program.words;
  std::size_t bytes = 0;
  for (auto _ : state) {
    bytes = 0;
    const auto status = disassemble(words, Dialect(), [&](std::string_view text) {
      bytes += text.size();
      return Status();
    });
    if (!status) state.SkipWithError("the words do not disassemble");
  }
  count_bytes(state, bytes);
}
BENCHMARK(disassemble_words)->Unit(benchmark::kMillisecond);

void format_text(benchmark::State& state) {
  const std::string text = program_text(true, true);
  for (auto _ : state) {
    Formatter formatter("bench.asm");
    std::string out;
    formatter.feed(text, out);
    if (!formatter.finish(out)) state.SkipWithError("the text cannot be laid out");
    benchmark::DoNotOptimize(out.data());
  }
  count_bytes(state, text.size());
}
BENCHMARK(format_text)->Unit(benchmark::kMillisecond);

void read_mem(benchmark::State& state) {
  const auto words = assemble(program_text(false, false), options()).program.words;
  const std::string text = mem_text(words);
  for (auto _ : state) {
    const auto read = parse_mem(text, "bench.mem");
    if (!read) state.SkipWithError("the words cannot be read");
    benchmark::DoNotOptimize(read->data());
  }
  count_bytes(state, text.size());
}
BENCHMARK(read_mem)->Unit(benchmark::kMillisecond);

void write_mem_text(benchmark::State& state) {
  const auto words = assemble(program_text(false, false), options()).program.words;
  std::size_t bytes = 0;
  for (auto _ : state) {
    bytes = 0;
    (void)write_mem(words, [&](std::string_view text) {
      bytes += text.size();
      return Status();
    });
  }
  count_bytes(state, bytes);
}
BENCHMARK(write_mem_text)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace plena
