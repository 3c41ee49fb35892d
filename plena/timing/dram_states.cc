// The states of the memory: which one is at hand, what is known to follow it, and when the
// controller has to be put into it.
#include <algorithm>
#include <utility>

#include "plena/timing/dram_hbm.h"

namespace plena {

namespace {

using dram::Tick;

// In the place of a unit, in keys.
constexpr std::int32_t kToRest = -1;   // no transfer starts before the memory is at rest
constexpr std::int32_t kPassage = -2;  // what was seen to follow, with a refresh
// In the place of ticks to a refresh: none falls into it.
constexpr std::int32_t kNoRefresh = -1;
// In the place of a distance between rows: they do not meet.
constexpr std::int32_t kApart = std::numeric_limits<std::int32_t>::max();

void append(RememberedStates::Key& key, Tick word) {
  key.push_back(static_cast<std::int32_t>(word));
  key.push_back(static_cast<std::int32_t>(word >> 32));
}

// How far rows of one region lie behind those of another where any may be the same.
std::int32_t distance(const PatternOrigin& a, bool a_scale, const PatternOrigin& b, bool b_scale) {
  if (a.last_row[a_scale] < b.first_row[b_scale] || b.last_row[b_scale] < a.first_row[a_scale])
    return kApart;
  return static_cast<std::int32_t>(a.first_row[a_scale] - b.first_row[b_scale]);
}

}  // namespace

// ------------------------------------------------------------ from state to state

// A transfer has been filled in and starts.
void DramHbm::join(Ticket ticket) {
  Transfer& transfer = transfers_[ticket];
  const Tick edge = transfer.start;
  // What is remembered supposes that time does not go back.
  if (edge < latest_start_) {
    stop_remembering();
    remembers_ = false;
  }
  latest_start_ = edge;
  const auto add = [&] {
    transfer.place = static_cast<std::uint8_t>(current_.live.size());
    current_.live.push_back(ticket);
  };
  if (!remembering()) {
    drop_finished();
    write_ends(transfer);
    waiting_[transfer.turn].push_back(ticket);
    return add();
  }
  pass_time_to(edge);
  if (Step* step = known_start_step(transfer, edge)) {
    if (current_.latest != nullptr) current_.latest->follow_with(step);
    take(*step, current_.begin, edge);
    return add();
  }

  if (states_.full()) forget_states();
  simulate_to(edge);
  Step step;
  if (current_.state != nullptr) {
    const bool refreshed = controller_.now() >= current_.refresh_due;
    write_start_key(transfer, edge, refreshed);
    step = seen_step(current_.begin, edge, false);
    if (refreshed) step.refresh = current_.refresh_due - current_.begin;
  }
  drop_finished();
  write_ends(transfer);
  waiting_[transfer.turn].push_back(ticket);
  add();
  if (current_.live.size() > RememberedStates::kMostTransfers ||
      transfer.bursts > RememberedStates::kMostBursts) {
    return stop_remembering();
  }
  const bool from_state = current_.state != nullptr;
  enter_state(edge);
  if (!from_state) return;
  Step* before = current_.latest;
  add_step(std::move(step));
  if (before != nullptr) before->follow_with(current_.latest);
}

// As far as it is known, and to the last rest before a transfer starts at `edge`.
void DramHbm::pass_time_to(Tick edge) {
  while (Step* step = known_rest_step(edge)) {
    const Tick from = rest_base();
    take(*step, from, from + step->passage->until);
  }
}

// The memory does what it did before.
void DramHbm::take(Step& step, Tick from, Tick at) {
  ++step.times;
  for (const RememberedStates::ChangedBank& changed : step.changed()) {
    dram::BankState& bank = current_.banks[changed.bank];
    bank.ready = at + changed.ready;
    bank.activated = at + changed.activated;
    if (changed.place == RememberedStates::ChangedBank::kSameRow) continue;
    if (changed.place == RememberedStates::ChangedBank::kClosed) {
      bank.open_row = dram::kNoRow;
      continue;
    }
    const Transfer& transfer = transfers_[current_.live[changed.transfer]];
    bank.open_row = BurstPattern::row(transfer.pattern->places[changed.place], transfer.origin);
  }
  for (std::size_t i = 0; i < current_.live.size(); ++i) {
    Transfer& transfer = transfers_[current_.live[i]];
    const RememberedStates::Progress& known = step.progress()[i];
    bursts_remembered_ += known.last_end - known.first_end;
    transfer.progress = {.handed = known.handed,
                         .unfinished = known.unfinished,
                         .accepted = from + known.accepted,
                         .finished = from + known.finished};
    if (known.first_end != known.last_end)
      transfer.told.push_back({.passage = step.passage.get(), .place = i, .from = from});
  }
  drop_finished();
  current_.state = step.to;
  current_.begin = at;
  current_.refresh_due += step.refresh_moved;
  current_.controlled = false;
  current_.asked = Asked::Nothing;
  current_.told = {};
  current_.latest = &step;
  current_.expected = step.next;
  if (step.next == nullptr) return;
  // By the time it is taken it should be near.
  constexpr std::size_t kLine = 64;
  constexpr std::size_t kLines = 8;
  const auto* expected = reinterpret_cast<const std::byte*>(step.next);
  for (std::size_t i = 0; i < sizeof(Step); i += kLine) __builtin_prefetch(expected + i);
  for (std::size_t line = 0; line < kLines; ++line)
    __builtin_prefetch(step.next_bytes + kLine * line);
}

void DramHbm::drop_finished() {
  std::erase_if(current_.live,
                [&](Ticket ticket) { return transfers_[ticket].progress.unfinished == 0; });
  for (std::size_t i = 0; i < current_.live.size(); ++i)
    transfers_[current_.live[i]].place = static_cast<std::uint8_t>(i);
}

// From here on everything is simulated until the next transfer starts, if not for ever.
void DramHbm::stop_remembering() {
  control();
  current_.state = nullptr;
  current_.latest = nullptr;
  current_.expected = nullptr;
}

void DramHbm::catch_up() {
  if (current_.state == nullptr) return;
  while (!current_.state->at_rest) {
    Step* step = known_rest_step(dram::kNever);
    if (step == nullptr) break;
    take(*step, current_.begin, current_.begin + step->passage->until);
  }
  const std::vector<Ticket> live = current_.live;
  if (live.empty()) return;
  control();
  for (const Ticket ticket : live) complete(ticket);
}

// ------------------------------------------------------------ what is known

// A refresh is a step of its own for a memory at rest. What was sent before it matters only while
// it still holds something up, so that the step's ticks count from no earlier.
Tick DramHbm::rest_base() const {
  if (!current_.state->at_rest) return current_.begin;
  return std::max(current_.begin, current_.refresh_due - current_.state->settled);
}

void DramHbm::write_rest_key(bool refreshed) {
  key_.clear();
  key_.push_back(static_cast<std::int32_t>(current_.state->number));
  key_.push_back(kToRest);
  append(key_, refreshed ? current_.refresh_due - rest_base() : kNoRefresh);
  if (refreshed) write_banks(rest_base());
}

// What a refresh of all banks looks at and leaves behind: which are open, and what still holds up.
void DramHbm::write_banks(Tick at) {
  for (std::size_t first = 0; first < current_.banks.size(); first += dram::kMaxBanks) {
    dram::BankSet open = 0;
    for (unsigned i = 0; i < dram::kMaxBanks; ++i) {
      const dram::BankState& bank = current_.banks[first + i];
      const bool is_open = bank.open_row != dram::kNoRow;
      if (is_open) open |= dram::only(i);
      const Tick ready = std::max<Tick>(bank.ready - at, 0);
      const Tick activated = is_open ? std::max(bank.activated - at, -open_row_reach_) : 0;
      if (ready == 0 && (!is_open || activated == -open_row_reach_)) continue;
      for (const Tick word : {Tick{i}, ready, activated})
        key_.push_back(static_cast<std::int32_t>(word));
    }
    key_.push_back(-1);
    append(key_, static_cast<Tick>(open));
  }
}

// Whether a refresh so near was ever met in this state.
bool DramHbm::refresh_was_seen() const {
  return current_.refresh_due - current_.begin <= current_.state->refreshed_after;
}

// The step to the memory at rest by `edge`, if it is known and gets that far.
DramHbm::Step* DramHbm::known_rest_step(Tick edge) {
  if (current_.state == nullptr || current_.simulated) return nullptr;
  const State& state = *current_.state;
  if (state.at_rest && current_.refresh_due >= edge) return nullptr;
  Step* step = state.rest;
  if (step == nullptr || current_.refresh_due <= current_.begin + step->passage->reach) {
    if (!state.at_rest && !refresh_was_seen()) return nullptr;
    write_rest_key(true);
    step = states_.find_step(key_);
  }
  return step != nullptr && rest_base() + step->passage->until <= edge ? step : nullptr;
}

// When a transfer starts, what it asks for, and which of its rows are open or asked for already.
void DramHbm::write_start_key(const Transfer& transfer, Tick edge, bool refreshed) {
  const State& state = *current_.state;
  Tick since = edge - current_.begin;
  if (state.at_rest && !refreshed) since = std::min(since, state.settled);
  key_.clear();
  key_.push_back(static_cast<std::int32_t>(state.number));
  key_.push_back(static_cast<std::int32_t>(transfer.turn));
  key_.push_back(transfer.pattern->number);
  append(key_, since);
  append(key_, refreshed ? current_.refresh_due - current_.begin : kNoRefresh);
  unsettled_.clear();
  std::uint32_t open = 0;
  unsigned bits = 0;
  for (const BurstPattern::Place& place : transfer.pattern->places) {
    const dram::BankState& bank = current_.banks[place.bank];
    const std::uint32_t row = BurstPattern::row(place, transfer.origin);
    const bool is_open = bank.open_row != dram::kNoRow;
    open = open << 2 | (is_open ? 2U : 0U) | (bank.open_row == row ? 1U : 0U);
    if (bits += 2; bits % 32 == 0) key_.push_back(static_cast<std::int32_t>(open));
    const Tick ready = std::max<Tick>(bank.ready - edge, 0);
    const Tick activated =
        is_open ? std::max(bank.activated - edge, -open_row_reach_) : -open_row_reach_;
    if (ready == 0 && activated == -open_row_reach_) continue;
    for (const Tick word : {Tick{bits}, ready, activated})
      unsettled_.push_back(static_cast<std::int32_t>(word));
  }
  key_.push_back(static_cast<std::int32_t>(open));
  key_.insert(key_.end(), unsettled_.begin(), unsettled_.end());
  key_.push_back(-1);
  if (refreshed) write_banks(current_.begin);
  for (const Ticket ticket : current_.live) {
    for (const bool mine : {false, true}) {
      for (const bool other : {false, true})
        key_.push_back(distance(transfer.origin, mine, transfers_[ticket].origin, other));
    }
  }
}

// The step of key_, most often the one that followed last time.
DramHbm::Step* DramHbm::find_step() {
  Step* expected = current_.expected;
  if (expected != nullptr && std::ranges::equal(expected->key(), key_)) return expected;
  return states_.find_step(key_);
}

DramHbm::Step* DramHbm::known_start_step(const Transfer& transfer, Tick edge) {
  if (current_.state == nullptr || current_.simulated) return nullptr;
  const bool at_rest = current_.state->at_rest;
  write_start_key(transfer, edge, at_rest && current_.refresh_due < edge);
  Step* step = find_step();
  if (at_rest) return step;
  if (step != nullptr && current_.refresh_due > current_.begin + step->passage->reach) return step;
  if (!refresh_was_seen()) return nullptr;
  write_start_key(transfer, edge, true);
  return find_step();
}

void DramHbm::write_passage_key() {
  key_.clear();
  key_.push_back(static_cast<std::int32_t>(current_.state->number));
  key_.push_back(kPassage);
  append(key_, current_.refresh_due - current_.begin);
  write_banks(current_.begin);
}

// What was seen to follow the state at hand: as much as last time, or as ever.
DramHbm::Told DramHbm::known_passage() {
  const auto told = [](const std::shared_ptr<const Passage>& passage) {
    return Told{passage->until, passage->whole, passage->transfers, &passage};
  };
  if (current_.state == nullptr) return {};
  const Passage* seen = current_.state->seen.get();
  if (seen != nullptr && current_.refresh_due > current_.begin + seen->reach)
    return told(current_.state->seen);
  if (!refresh_was_seen()) return {};
  write_passage_key();
  const auto* refreshed = states_.find_passage(key_);
  return refreshed == nullptr ? Told{} : told(*refreshed);
}

// The same if the next transfer starts as it did last time: less, but at hand.
DramHbm::Told DramHbm::expected_passage() const {
  const Step* step = current_.expected;
  if (step == nullptr || current_.state->at_rest) return {};
  const Tick due = current_.refresh_due - current_.begin;
  if (step->refresh < 0 ? due <= step->reach : due != step->refresh) return {};
  return {step->until, false, step->progress(), &step->passage};
}

// ------------------------------------------------------------ what is new

// Everything before `edge` happens. A memory that comes to rest on the way is a state of its own.
void DramHbm::simulate_to(Tick edge) {
  control();
  while (current_.state != nullptr && simulate_to_rest(edge)) {
  }
  for (Tick next = next_edge(); next < edge; next = next_edge()) hand_over(next);
  controller_.advance_to(edge - 1);
  collect();
}

bool DramHbm::simulate_to_rest(Tick edge) {
  if (current_.state->at_rest) {
    if (current_.refresh_due >= edge) return false;
    controller_.advance_to(current_.refresh_due);
  }
  for (Tick next = next_edge(); next < edge; next = next_edge()) hand_over(next);
  while (!controller_.at_rest() && controller_.next_event() < edge)
    controller_.advance_to(controller_.next_event());
  const Tick per_ck = controller_.ticks_per_ck();
  const Tick at = (std::max(controller_.now(), edge_ - 1) + per_ck) / per_ck * per_ck;
  if (at > edge || next_edge() != dram::kNever || !controller_.at_rest()) return false;
  controller_.advance_to(at - 1);
  if (!controller_.at_rest()) return false;  // a refresh fell due
  collect();
  if (current_.state == nullptr) return false;

  const bool refreshed = controller_.now() >= current_.refresh_due;
  write_rest_key(refreshed);
  Step step = seen_step(rest_base(), at, true);
  drop_finished();
  State& from = *current_.state;
  enter_state(at);
  add_step(std::move(step));
  if (!refreshed) from.rest = current_.latest;
  return true;
}

// What was seen to follow the state at hand before tick `at`, from `from` on.
DramHbm::Step DramHbm::seen_step(Tick from, Tick at, bool whole) {
  auto passage = std::make_shared<Passage>();
  passage->until = at - from;
  passage->reach = controller_.now() - from;
  passage->whole = whole;
  std::size_t ends = 0;
  for (const auto& of_transfer : current_.ends) ends += of_transfer.size();
  passage->ends.reserve(ends);
  passage->transfers.reserve(current_.live.size());
  for (std::size_t i = 0; i < current_.live.size(); ++i) {
    const Progress& progress = transfers_[current_.live[i]].progress;
    const auto first_end = static_cast<std::uint32_t>(passage->ends.size());
    passage->ends.insert(passage->ends.end(), current_.ends[i].begin(), current_.ends[i].end());
    passage->transfers.push_back({.handed = progress.handed,
                                  .unfinished = progress.unfinished,
                                  .accepted = static_cast<std::int32_t>(progress.accepted - from),
                                  .finished = static_cast<std::int32_t>(progress.finished - from),
                                  .first_end = first_end,
                                  .last_end = static_cast<std::uint32_t>(passage->ends.size())});
  }
  Step step;
  step.refresh_moved = controller_.refresh_due() - current_.refresh_due;
  find_changed_banks(at);
  auto counts = std::make_unique<RememberedStates::Counts>();
  counts->activity = controller_.activity().since(current_.activity_before);
  for (std::size_t i = 0; i < current_.latencies.size(); ++i) {
    const auto& seen = current_.latencies[i];
    for (std::size_t latency = 0; latency < seen.size(); ++latency) {
      if (seen[latency] != 0)
        counts->latencies[i].emplace_back(static_cast<std::uint32_t>(latency),
                                          static_cast<std::uint32_t>(seen[latency]));
    }
  }
  step.counts = std::move(counts);
  step.passage = passage;
  note_seen(std::move(passage));
  return step;
}

// Which banks are not as they were, where their rows are those of transfers that had bursts left
// there: not any row that is the same by chance.
void DramHbm::find_changed_banks(Tick at) {
  using Changed = RememberedStates::ChangedBank;
  controller_.copy_banks(banks_);
  place_of_row_.assign(banks_.size(), Changed{.place = Changed::kClosed});
  std::size_t opened = 0;
  for (std::size_t number = 0; number < banks_.size(); ++number) {
    if (banks_[number].open_row == current_.banks[number].open_row) {
      place_of_row_[number].place = Changed::kSameRow;
    } else if (banks_[number].open_row != dram::kNoRow) {
      ++opened;
    }
  }
  const auto note = [&](const Transfer& transfer, std::size_t number) {
    const BurstPattern::Place& place = transfer.pattern->places[number];
    Changed& changed = place_of_row_[place.bank];
    const std::uint32_t row = BurstPattern::row(place, transfer.origin);
    if (changed.place != Changed::kClosed || banks_[place.bank].open_row != row) return;
    changed.place = static_cast<std::uint16_t>(number);
    changed.transfer = transfer.place;
    --opened;
  };
  for (std::size_t i = 0; i < current_.live.size() && opened != 0; ++i) {
    const Transfer& transfer = transfers_[current_.live[i]];
    left_.resize(transfer.bursts);
    for (std::uint32_t burst = 0; burst < transfer.bursts; ++burst)
      left_[burst] = transfer.ends[burst] == kUnknown ? 1 : 0;
    for (const RememberedStates::KnownEnd& one : current_.ends[i]) left_[one.burst] = 1;
    // The last burst of a row is mostly the last one to be left.
    for (std::size_t number = 0; number < transfer.pattern->places.size(); ++number)
      if (left_[transfer.pattern->lasts[number]] != 0) note(transfer, number);
    for (std::uint32_t burst = 0; burst < transfer.bursts && opened != 0; ++burst)
      if (left_[burst] != 0) note(transfer, transfer.pattern->bursts[burst].place);
  }
  write_changed_banks(at);
}

// With the places of their rows known.
void DramHbm::write_changed_banks(Tick at) {
  const auto ready = [&](const dram::BankState& bank) {
    return std::max<Tick>(bank.ready - at, 0);
  };
  const auto activated = [&](const dram::BankState& bank) {
    return std::max(bank.activated - at, -open_row_reach_);
  };
  changed_.clear();
  for (std::size_t number = 0; number < banks_.size(); ++number) {
    const dram::BankState& now = banks_[number];
    const dram::BankState& before = current_.banks[number];
    if (now.open_row == before.open_row && ready(now) == ready(before) &&
        activated(now) == activated(before)) {
      continue;
    }
    RememberedStates::ChangedBank changed = place_of_row_[number];
    changed.bank = static_cast<std::uint16_t>(number);
    changed.ready = static_cast<std::int16_t>(ready(now));
    changed.activated = static_cast<std::int16_t>(activated(now));
    changed_.push_back(changed);
  }
}

void DramHbm::note_seen(std::shared_ptr<const Passage> passage) {
  const auto longer_than = [&](const std::shared_ptr<const Passage>& known) {
    return known == nullptr || (!known->whole && known->until < passage->until);
  };
  State& state = *current_.state;
  if (state.at_rest) return;
  if (current_.refresh_due > current_.begin + passage->reach) {
    if (longer_than(state.seen)) state.seen = std::move(passage);
    return;
  }
  state.refreshed_after = std::max(state.refreshed_after, current_.refresh_due - current_.begin);
  const RememberedStates::Key step_key = std::exchange(key_, {});
  write_passage_key();
  const auto* known = states_.find_passage(key_);
  if (known == nullptr || longer_than(*known)) states_.add_passage(key_, std::move(passage));
  key_ = step_key;
}

// The key is key_, the banks are changed_.
void DramHbm::add_step(Step step) {
  step.to = current_.state;
  current_.latest = states_.add_step(key_, std::move(step), changed_);
}

// The controller stays where it is, in no known state.
void DramHbm::forget_states() {
  stop_remembering();
  for (Transfer& transfer : transfers_)
    if (!transfer.told.empty()) write_ends(transfer);
  states_.forget();
}

// The controller's state just before tick `at` is the one at hand.
void DramHbm::enter_state(Tick at) {
  current_.begin = at;
  current_.refresh_due = controller_.refresh_due();
  write_state(at);
  const auto [state, is_new] = states_.state(words_);
  if (is_new && current_.live.empty()) {
    state->at_rest = true;
    state->settled = std::max<Tick>(controller_.settled() - at, 0);
  }
  current_.state = state;
  current_.expected = nullptr;
  current_.controlled = true;
  begin_to_see();
  current_.asked = Asked::Nothing;
  controller_.copy_banks(current_.banks);
}

void DramHbm::begin_to_see() {
  current_.simulated = false;
  current_.ends.resize(std::max(current_.ends.size(), current_.live.size()));
  for (auto& of_transfer : current_.ends) of_transfer.clear();
  current_.activity_before = controller_.activity();
  for (auto& counts : current_.latencies) counts.clear();
}

// Whose turn it is, the transfers, the controller, and which rows will be asked for.
void DramHbm::write_state(Tick at) {
  words_.clear();
  const auto add = [&](auto word) { dram::append_word(words_, static_cast<std::int32_t>(word)); };
  add(turn_);
  add(std::max<Tick>(edge_ - at, 0));
  add(current_.live.size());
  for (const Ticket ticket : current_.live) {
    const Transfer& transfer = transfers_[ticket];
    add(transfer.turn);
    add(transfer.pattern->number);
    add(transfer.bursts - transfer.progress.handed);
  }
  for (dram::RowNames& names : names_) names.clear();
  controller_.save(
      {.at = at, .refresh_due = current_.refresh_due}, names_,
      [&](std::uint64_t id) {
        return dram::RequestName{.transfer = transfers_[id >> 32].place,
                                 .burst = static_cast<std::int32_t>(id)};
      },
      words_);
  // Behind what is read again: what will be asked for, and the banks that matter.
  controller_.banks_at_work(at_work_);
  for (const Ticket ticket : current_.live) {
    const Transfer& transfer = transfers_[ticket];
    for (std::size_t i = 0; i < transfer.pattern->places.size(); ++i) {
      if (transfer.pattern->lasts[i] < transfer.progress.handed) continue;
      const BurstPattern::Place& place = transfer.pattern->places[i];
      const unsigned channel = place.bank / dram::kMaxBanks;
      const unsigned bank = place.bank % dram::kMaxBanks;
      at_work_[channel] |= dram::only(bank);
      add(names_[channel].of(bank, BurstPattern::row(place, transfer.origin)));
    }
  }
  controller_.save_banks(at_work_, at, names_, words_);
}

// Puts the controller into the state at hand, if it is not there. Nothing is foretold from here on.
void DramHbm::control() {
  current_.asked = Asked::All;
  current_.told = {};
  if (current_.controlled) return;
  current_.controlled = true;
  dram::StateReader words(*current_.state->words);
  turn_ = static_cast<std::size_t>(words.next());
  edge_ = current_.begin + words.next();
  for (auto& transfers : waiting_) transfers.clear();
  for (std::int32_t left = words.next(); left > 0; --left)
    for (int word = 0; word < 3; ++word) words.next();
  for (const Ticket ticket : current_.live) {
    Transfer& transfer = transfers_[ticket];
    write_ends(transfer);
    if (transfer.progress.handed < transfer.bursts) waiting_[transfer.turn].push_back(ticket);
  }
  const auto find = [&](dram::RequestName name) {
    const Ticket ticket = current_.live[static_cast<std::size_t>(name.transfer)];
    const Transfer& transfer = transfers_[ticket];
    const auto burst = static_cast<std::uint32_t>(name.burst);
    return dram::NamedRequest{
        .id = std::uint64_t{ticket} << 32 | burst,
        .place = controller_.place(transfer.pattern->address(burst, transfer.origin))};
  };
  controller_.load({.at = current_.begin, .refresh_due = current_.refresh_due}, current_.banks,
                   find, words);
  begin_to_see();
}

}  // namespace plena
