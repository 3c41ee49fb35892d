#include "plena/asm/mnemonics.h"

#include <cstring>
#include <vector>

#include "plena/base/near_miss.h"

namespace plena {

namespace {

constexpr std::size_t kLongest = 16;

// What text has beside the instructions.
constexpr std::array kOwn = {
    Mnemonic{"LI", Mnemonic::Kind::LoadImmediate}, Mnemonic{".equ", Mnemonic::Kind::Equ},
    Mnemonic{".word", Mnemonic::Kind::Word}, Mnemonic{".region", Mnemonic::Kind::RegionBegin},
    Mnemonic{".endregion", Mnemonic::Kind::RegionEnd}};

// Eight characters at a time; bytes outside a … z stay.
constexpr std::uint64_t upper_case(std::uint64_t text) {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  const std::uint64_t low_bits = text & (0x7F * kOnes);
  const std::uint64_t above_z = low_bits + (0x7F - 'z') * kOnes;
  const std::uint64_t from_a = low_bits + (0x80 - 'a') * kOnes;
  const std::uint64_t is_lower = (from_a ^ above_z) & ~text & (0x80 * kOnes);
  return text - (is_lower >> 2);  // 0x80 becomes 0x20, the distance of the cases
}

}  // namespace

MnemonicTable::MnemonicTable() {
  for (const auto& row : instruction_table()) {
    add({row.mnemonic, Mnemonic::Kind::Instruction, &row});
  }
  for (const auto& mnemonic : kOwn) add(mnemonic);
}

MnemonicTable::Key MnemonicTable::key_of(std::string_view text) {
  char letters[kLongest] = {};
  std::memcpy(letters, text.data(), text.size());
  Key key;
  std::memcpy(&key.low, letters, sizeof key.low);
  std::memcpy(&key.high, letters + sizeof key.low, sizeof key.high);
  return {upper_case(key.low), upper_case(key.high)};
}

std::size_t MnemonicTable::slot_of(const Key& key) {
  const std::uint64_t mixed = (key.low ^ (key.high * 0x9E3779B97F4A7C15)) * 0xD6E8FEB86659FD93;
  return static_cast<std::size_t>(mixed >> 56);
}

void MnemonicTable::add(const Mnemonic& mnemonic) {
  const Key key = key_of(mnemonic.name);
  std::size_t slot = slot_of(key);
  while (!mnemonics_[slot].name.empty()) slot = (slot + 1) % kSlots;
  keys_[slot] = key;
  mnemonics_[slot] = mnemonic;
}

const Mnemonic* MnemonicTable::find(std::string_view text) const {
  if (text.empty() || text.size() > kLongest) return nullptr;
  const Key key = key_of(text);
  for (std::size_t slot = slot_of(key); !mnemonics_[slot].name.empty();
       slot = (slot + 1) % kSlots) {
    if (keys_[slot] == key) return &mnemonics_[slot];
  }
  return nullptr;
}

std::string MnemonicTable::suggest(std::string_view text) {
  std::vector<std::string_view> names;
  for (const auto& row : instruction_table()) names.push_back(row.mnemonic);
  for (const auto& mnemonic : kOwn) names.push_back(mnemonic.name);
  return did_you_mean(text, names);
}

}  // namespace plena
