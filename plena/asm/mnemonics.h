// What the first word of a line can be, found by a hash of its letters.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "plena/isa/instruction.h"

namespace plena {

struct Mnemonic {
  enum class Kind : std::uint8_t { Instruction, LoadImmediate, Equ, Word, RegionBegin, RegionEnd };

  std::string_view name;
  Kind kind = Kind::Instruction;
  const InstructionRow* row = nullptr;  // of an instruction
};

class MnemonicTable {
 public:
  MnemonicTable();

  /// In any case; nullptr when there is none.
  [[nodiscard]] const Mnemonic* find(std::string_view text) const;
  /// `did you mean V_ADD_VV?`, or an empty string.
  [[nodiscard]] static std::string suggest(std::string_view text);

 private:
  // Sixteen upper-case letters: no mnemonic is longer.
  struct Key {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };
  static constexpr std::size_t kSlots = 256;  // sparse, so that probes are rare

  static Key key_of(std::string_view text);
  static std::size_t slot_of(const Key& key);
  void add(const Mnemonic& mnemonic);

  std::array<Key, kSlots> keys_{};
  std::array<Mnemonic, kSlots> mnemonics_{};
};

}  // namespace plena
