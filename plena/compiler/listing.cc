#include "plena/compiler/listing.h"

#include <fmt/format.h>

#include "plena/asm/disassembler.h"

namespace plena {

namespace {

constexpr std::size_t kCommentColumn = 40;

class Printer {
 public:
  explicit Printer(const Listing& listing) : listing_(listing) {}

  EmittedProgram print() {
    out_.program.source_name = "program.asm";
    for (at_ = 0; at_ < listing_.size(); ++at_) print_line(listing_[at_]);
    return std::move(out_);
  }

 private:
  void print_line(const Line& line) {
    Program& program = out_.program;
    switch (line.kind) {
      case Line::Kind::Code:
        return print_code(line);
      case Line::Kind::Comment:
        return write("; " + line.text);
      case Line::Kind::Blank:
        return write({});
      case Line::Kind::Region:
        open_.push_back(program.regions.size());
        program.regions.push_back({line.text, program.words.size(), 0});
        return write(".region " + line.text);
      case Line::Kind::EndRegion:
        program.regions[open_.back()].end = program.words.size();
        open_.pop_back();
        return write(".endregion");
      case Line::Kind::Entry:
        out_.entries.push_back(static_cast<std::uint32_t>(program.words.size()));
        return;
    }
  }

  void print_code(const Line& line) {
    const Instruction& i = line.instruction;
    if (i.op == Op::C_LOOP_END && depth_ != 0) --depth_;
    append(i);
    if (i.op == Op::S_LUI_INT && i.imm > kImm18Max >> kLuiShift) {
      print_large_constant(line);
    } else if (i.op == Op::S_ADDI_INT && i.rs1 == 0) {
      write_code(fmt::format("LI gp{}, {}", i.rd, i.imm), line.text);
    } else {
      write_code(disassemble(i), line.text);
    }
    if (i.op == Op::C_LOOP_START) ++depth_;
  }

  // `LI` stands for both words where the low one follows its upper one (semantics 2).
  void print_large_constant(const Line& upper) {
    const Instruction& high = upper.instruction;
    const std::uint64_t value = std::uint64_t{high.imm} << kLuiShift;
    const Line* low = at_ + 1 < listing_.size() ? &listing_[at_ + 1] : nullptr;
    if (low == nullptr || !low->is_code() || !completes(high, low->instruction)) {
      return write_code(fmt::format("LI gp{}, {}", high.rd, value), upper.text);
    }
    append(low->instruction);
    ++at_;
    write_code(fmt::format("LI gp{}, {}", high.rd, value + low->instruction.imm),
               low->text.empty() ? upper.text : low->text);
  }

  static bool completes(const Instruction& high, const Instruction& low) {
    return low.op == Op::S_ADDI_INT && low.rd == high.rd && low.rs1 == high.rd && low.imm != 0 &&
           low.imm >> kLuiShift == 0;
  }

  void append(const Instruction& instruction) {
    out_.program.words.push_back(encode(instruction));
    out_.program.lines.push_back(line_);
  }

  void write(std::string_view text) {
    if (!text.empty()) out_.text.append(2 * std::size_t{depth_}, ' ');
    out_.text += text;
    out_.text += '\n';
    ++line_;
  }

  void write_code(std::string_view code, std::string_view comment) {
    if (comment.empty()) return write(code);
    const std::size_t indent = 2 * std::size_t{depth_};
    const std::size_t column = indent < kCommentColumn ? kCommentColumn - indent : 0;
    write(fmt::format("{:<{}}; {}", code, column, comment));
  }

  const Listing& listing_;
  std::size_t at_ = 0;
  EmittedProgram out_;
  std::uint32_t line_ = 1;         // of the text, the next to be written
  unsigned depth_ = 0;             // open loops, for indentation
  std::vector<std::size_t> open_;  // regions that have not ended
};

}  // namespace

EmittedProgram print(const Listing& listing) {
  return Printer(listing).print();
}

}  // namespace plena
