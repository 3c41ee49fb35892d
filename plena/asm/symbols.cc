#include "plena/asm/symbols.h"

#include <algorithm>
#include <vector>

#include "plena/base/near_miss.h"

namespace plena {

bool SymbolTable::add(std::string_view name, Symbol symbol) {
  return symbols_.emplace(name, std::move(symbol)).second;
}

const Symbol* SymbolTable::find(std::string_view name) const {
  const auto found = symbols_.find(name);
  return found == symbols_.end() ? nullptr : &found->second;
}

std::string SymbolTable::suggest(std::string_view name) const {
  // Beyond this many, looking at all of them costs more than a suggestion is worth.
  constexpr std::size_t kMostCandidates = 1000;
  std::vector<std::string_view> names;
  for (const auto& [known, symbol] : symbols_) {
    if (names.size() == kMostCandidates) break;
    names.push_back(known);
  }
  std::ranges::sort(names);
  return did_you_mean(name, names);
}

bool is_symbol_name(std::string_view text) {
  return !text.empty() && is_name_start(text[0]) && std::ranges::all_of(text, is_name_character);
}

}  // namespace plena
