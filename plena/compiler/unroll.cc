#include "plena/compiler/unroll.h"

#include <algorithm>

#include "plena/compiler/register_use.h"

namespace plena {

namespace {

class Unroller {
 public:
  Unroller(const Listing& listing, std::size_t whole, std::size_t part)
      : listing_(listing),
        whole_(whole),
        part_(part),
        partner_(pair_loops(listing)),
        live_(live_before(listing)) {}

  Listing all() { return through(0, listing_.size()); }

 private:
  // The lines of a stretch, inner loops first.
  Listing through(std::size_t at, std::size_t end) {
    Listing out;
    for (; at < end; ++at) {
      const Line& line = listing_[at];
      if (line.is_code() && line.instruction.op == Op::C_LOOP_START && partner_[at] != at) {
        append(out, loop(at));
        at = partner_[at];
      } else {
        out.push_back(line);
      }
    }
    return out;
  }

  Listing loop(std::size_t start) {
    const std::size_t end = partner_[start];
    const Listing body = through(start + 1, end);
    const std::uint32_t trips = listing_[start].instruction.imm;
    const std::uint32_t copies = copies_of(start, body);
    const bool stays = copies == 0 || copies < trips;
    Listing out;
    if (stays) {
      out.push_back(listing_[start]);
      if (copies != 0) out.back().instruction.imm = trips / copies;
    }
    if (copies == 0) append(out, body);
    for (std::uint32_t copy = 0; copy < copies; ++copy) append_copy(out, body, copy == 0);
    if (stays) out.push_back(listing_[end]);
    return out;
  }

  // Into how many copies of its body a loop goes; 0 where it stays as it is.
  [[nodiscard]] std::uint32_t copies_of(std::size_t start, const Listing& body) const {
    if (!counts_alone(start, body)) return 0;
    const std::uint32_t trips = listing_[start].instruction.imm;
    const auto size = static_cast<std::size_t>(std::ranges::count_if(body, &Line::is_code));
    if (size * trips <= whole_) return trips;
    if (std::ranges::any_of(body, is_loop)) return 0;
    auto copies = static_cast<std::uint32_t>(
        std::min<std::size_t>(part_ / std::max<std::size_t>(size, 1), trips));
    while (copies > 1 && trips % copies != 0) --copies;
    return std::max(copies, 1U);
  }

  // Whether the counter serves the loop only, and the body can stand there more than once.
  [[nodiscard]] bool counts_alone(std::size_t start, const Listing& body) const {
    const RegisterSet counter = register_bit(listing_[start].instruction.rd);
    if ((live_[partner_[start] + 1] & counter) != 0) return false;
    return std::ranges::none_of(body, [&](const Line& line) {
      if (!line.is_code())
        return line.kind != Line::Kind::Comment && line.kind != Line::Kind::Blank;
      const RegisterNeeds use = registers_of(line.instruction);
      return ((use.reads | use.writes) & counter) != 0 || line.instruction.op == Op::C_BREAK;
    });
  }

  static bool is_loop(const Line& line) {
    return line.is_code() && line.instruction.op == Op::C_LOOP_START;
  }
  static void append(Listing& out, const Listing& lines) {
    out.insert(out.end(), lines.begin(), lines.end());
  }
  static void append_copy(Listing& out, const Listing& body, bool is_first) {
    for (const Line& line : body) {
      if (line.is_code() || is_first) out.push_back(line);
    }
  }

  const Listing& listing_;
  std::size_t whole_;
  std::size_t part_;
  std::vector<std::size_t> partner_;
  std::vector<RegisterSet> live_;
};

}  // namespace

Listing unroll(const Listing& listing, std::size_t whole, std::size_t part) {
  return Unroller(listing, whole, part).all();
}

}  // namespace plena
