// Runs of transfers: which one is at hand, what is known of it, and when the memory catches up with
// what was foretold.
#include <algorithm>

#include "plena/timing/dram_hbm.h"

namespace plena {

namespace {

using dram::Tick;

// Longer runs are not remembered.
constexpr std::size_t kMostTransfers = 32;
constexpr std::size_t kMostPatterns = std::size_t{1} << 17;
// In the place of a unit, in keys: a refresh joins the run.
constexpr std::int32_t kRefresh = -1;

void append(RememberedStreams::Key& key, std::int64_t word) {
  key.push_back(static_cast<std::int32_t>(word));
  key.push_back(static_cast<std::int32_t>(word >> 32));
}

}  // namespace

// ------------------------------------------------------------ which run

// A transfer starts at `edge`: nothing that comes later can change what happens before.
void DramHbm::pass_time_to(Tick edge) {
  settle_run();
  if (current_.outcome != nullptr) {
    const Tick until = current_.begin + current_.outcome->until;
    if (current_.outcome->whole && edge >= until) {
      follow_run();
    } else if (!current_.outcome->whole && edge > until + 1) {
      simulate_run();
    }
  }
  if (current_.run != nullptr && current_.simulated) {
    const bool at_rest = simulate_run_to(edge - 1);
    record_run(at_rest);
    if (at_rest) current_.run = nullptr;
  }
  if (current_.run == nullptr && (streams_.full() || patterns_.size() > kMostPatterns))
    forget_runs();
}

void DramHbm::note_start(Ticket ticket, std::size_t turn, const BurstPattern& pattern) {
  if (current_.run == nullptr) {
    begin_run(ticket, turn, pattern);
  } else {
    continue_run(ticket, turn, pattern);
  }
}

// The key of a run of one transfer: what it asks for, and the memory's state in the banks it
// touches, rows relative to its own.
void DramHbm::begin_run(Ticket ticket, std::size_t turn, const BurstPattern& pattern) {
  const Transfer& transfer = transfers_[ticket];
  const std::size_t waiting = waiting_[0].size() + waiting_[1].size() + waiting_[2].size();
  if (!remembers_ || listener_ != nullptr || waiting != 1) return;
  const Tick edge = std::max(transfer.start, edge_);
  controller_.advance_to(edge);
  collect();
  if (!controller_.at_rest()) return;

  current_.begin = edge;
  current_.row_base = static_cast<std::uint32_t>(transfer.pattern.base / controller_.row_period());
  current_.outcome = nullptr;
  current_.simulated = false;
  current_.tickets.clear();
  current_.turns.clear();
  key_.clear();
  for (const std::size_t word : {std::size_t{0}, turn, turn_, std::size_t{pattern.number}})
    key_.push_back(static_cast<std::int32_t>(word));
  controller_.save_rest(pattern.banks, {}, edge, current_.row_base, key_);
  const auto [run, is_new] = streams_.at(key_);
  if (is_new) run->banks = pattern.banks;
  current_.run = run;
  add_to_run(ticket, turn);
}

// The key of a longer run: the one it continues, what joins when, and what state the memory was in
// at the start in banks that were not touched before.
void DramHbm::continue_run(Ticket ticket, std::size_t turn, const BurstPattern& pattern) {
  add_to_run(ticket, turn);
  if (current_.tickets.size() > kMostTransfers) {
    end_run();
    return;
  }
  const RememberedStreams::Run& before = *current_.run;
  const Transfer& transfer = transfers_[ticket];
  key_.clear();
  key_.push_back(static_cast<std::int32_t>(before.number));
  key_.push_back(static_cast<std::int32_t>(turn));
  key_.push_back(static_cast<std::int32_t>(pattern.number));
  append(key_, std::max<Tick>(transfer.start - current_.begin, 0));
  append(key_, static_cast<std::int64_t>(transfer.pattern.base / controller_.row_period()) -
                   static_cast<std::int64_t>(current_.row_base));
  const dram::Controller& found = current_.simulated ? *current_.found : controller_;
  found.save_rest(pattern.banks, before.banks, current_.begin, current_.row_base, key_);
  const auto [run, is_new] = streams_.at(key_);
  if (is_new) {
    run->refreshes = before.refreshes;
    run->banks = before.banks;
    for (std::size_t i = 0; i < run->banks.size(); ++i) run->banks[i] |= pattern.banks[i];
  }
  current_.run = run;
}

void DramHbm::add_to_run(Ticket ticket, std::size_t turn) {
  current_.tickets.push_back(ticket);
  current_.turns.push_back(turn);
  current_.settled = false;
}

// The key of the run with the refresh that falls into it: what decides how all channels and banks
// are refreshed.
void DramHbm::write_refresh_key(const RememberedStreams::Run& run, const dram::Controller& found,
                                Tick refresh_due) {
  key_.clear();
  key_.push_back(static_cast<std::int32_t>(run.number));
  key_.push_back(kRefresh);
  append(key_, refresh_due - current_.begin);
  found.save_refresh(run.banks, current_.begin, key_);
}

// ------------------------------------------------------------ what becomes of it

// After this the run at hand is foretold or simulated.
void DramHbm::settle_run() {
  if (current_.run == nullptr || current_.settled) return;
  current_.settled = true;
  if (current_.simulated) return;
  if (RememberedStreams::Run* known = known_run()) {
    foretell_run(*known);
  } else {
    simulate_run();
  }
}

// The run at hand, or the same with the refresh that falls into it, if anything is known of it.
RememberedStreams::Run* DramHbm::known_run() {
  RememberedStreams::Run& run = *current_.run;
  const Tick due = controller_.refresh_due();
  if (run.outcome != nullptr && (run.refreshes || current_.begin + run.outcome->until < due))
    return &run;
  if (run.refreshes || controller_.settings().refresh != dram::RefreshMode::AllBank) return nullptr;
  write_refresh_key(run, controller_, due);
  RememberedStreams::Run* refreshed = streams_.find(key_);
  return refreshed != nullptr && refreshed->outcome != nullptr ? refreshed : nullptr;
}

void DramHbm::foretell_run(RememberedStreams::Run& run) {
  current_.run = &run;
  current_.outcome = run.outcome.get();
  for (auto& transfers : waiting_) transfers.clear();
  for (std::size_t i = 0; i < current_.tickets.size(); ++i) {
    const RememberedStreams::Transfer& known = current_.outcome->transfers[i];
    Transfer& transfer = transfers_[current_.tickets[i]];
    transfer.handed = known.all_accepted ? transfer.bursts : 0;
    transfer.unfinished = known.unfinished;
    transfer.accepted = current_.begin + known.accepted;
    transfer.finished = current_.begin + known.finished;
    transfer.told = &known;
    transfer.told_from = current_.begin;
  }
}

// From its start on. What joins is still looked up, as if it were foretold.
void DramHbm::simulate_run() {
  if (current_.found == nullptr) {
    current_.found =
        std::make_unique<dram::Controller>(*dram::Controller::make(controller_.settings()));
  }
  current_.found->take_rest(controller_, true);
  current_.refresh_due = controller_.refresh_due();
  current_.activity_before = controller_.activity();
  for (auto& counts : current_.latencies) counts.clear();
  take_back_run();
  current_.simulated = true;
}

// Up to and including tick `last`, but not beyond the end of the run; whether that was reached.
bool DramHbm::simulate_run_to(Tick last) {
  for (Tick edge = next_edge(); edge <= last; edge = next_edge()) hand_over(edge);
  while (!controller_.at_rest() && controller_.next_event() <= last)
    controller_.advance_to(controller_.next_event());
  const bool at_rest = controller_.at_rest() && next_edge() == dram::kNever;
  // A tick later the controller has turned from reads to writes, if it will.
  controller_.advance_to(at_rest ? std::min(controller_.now() + 1, last) : last);
  collect();
  return at_rest && controller_.at_rest();
}

void DramHbm::note_latency(const dram::Completion& completion) {
  auto& counts = current_.latencies[completion.is_write];
  const auto latency = static_cast<std::size_t>(completion.finished - completion.accepted);
  if (counts.size() <= latency) counts.resize(latency + 1);
  ++counts[latency];
}

// Writes down what was seen of the run that is simulated.
void DramHbm::record_run(bool at_rest) {
  const Tick now = controller_.now();
  if (!current_.run->refreshes && now >= current_.refresh_due) {
    if (controller_.settings().refresh != dram::RefreshMode::AllBank) return end_run();
    const RememberedStreams::Run& before = *current_.run;
    write_refresh_key(before, *current_.found, current_.refresh_due);
    const auto [run, is_new] = streams_.at(key_);
    if (is_new) {
      run->refreshes = true;
      run->banks = before.banks;
    }
    current_.run = run;
  }
  RememberedStreams::Run& run = *current_.run;
  const Tick until = now - current_.begin;
  if (run.outcome != nullptr && (run.outcome->whole || (!at_rest && run.outcome->until >= until)))
    return;
  RememberedStreams::Outcome outcome;
  outcome.until = until;
  for (const Ticket ticket : current_.tickets)
    outcome.transfers.push_back(record(transfers_[ticket]));
  if (at_rest) record_end(outcome);
  streams_.remember(run, std::move(outcome));
}

RememberedStreams::Transfer DramHbm::record(Transfer& transfer) const {
  RememberedStreams::Transfer seen;
  seen.all_accepted = transfer.handed == transfer.bursts;
  seen.unfinished = transfer.unfinished;
  seen.accepted = transfer.accepted - current_.begin;
  seen.finished = transfer.finished - current_.begin;
  seen.ends = transfer.recorded;
  if (seen.ends != nullptr) return seen;
  RememberedStreams::Ends ends(transfer.bursts, RememberedStreams::kUnknown);
  if (transfer.laid_out) {
    std::ranges::transform(transfer.ends, ends.begin(), [&](Tick end) {
      return end == dram::kNever ? RememberedStreams::kUnknown
                                 : static_cast<std::int32_t>(end - current_.begin);
    });
  }
  seen.ends = std::make_shared<const RememberedStreams::Ends>(std::move(ends));
  if (transfer.unfinished == 0) transfer.recorded = seen.ends;
  return seen;
}

void DramHbm::record_end(RememberedStreams::Outcome& outcome) {
  const Tick rest = controller_.now();
  outcome.whole = true;
  outcome.edge = edge_ - current_.begin;
  outcome.turn = turn_;
  if (current_.run->refreshes) {
    outcome.refresh_due = controller_.refresh_due() - current_.begin;
    controller_.save_refreshed(rest, current_.row_base, outcome.memory);
  } else {
    controller_.save_rest(current_.run->banks, {}, rest, current_.row_base, outcome.memory);
  }
  outcome.activity = controller_.activity().since(current_.activity_before);
  for (std::size_t i = 0; i < outcome.latencies.size(); ++i) {
    const auto& counts = current_.latencies[i];
    for (std::size_t latency = 0; latency < counts.size(); ++latency) {
      if (counts[latency] != 0)
        outcome.latencies[i].emplace_back(static_cast<Tick>(latency), counts[latency]);
    }
  }
}

// The memory does what the run did to it.
void DramHbm::follow_run() {
  RememberedStreams::Outcome& outcome = *current_.run->outcome;
  ++outcome.times;
  for (const Ticket ticket : current_.tickets) bursts_remembered_ += transfers_[ticket].bursts;
  const Tick rest = current_.begin + outcome.until;
  if (current_.run->refreshes) {
    controller_.load_refreshed(rest, current_.begin + outcome.refresh_due, current_.row_base,
                               outcome.memory);
  } else {
    controller_.load_rest(current_.run->banks, rest, current_.row_base, outcome.memory);
  }
  edge_ = current_.begin + outcome.edge;
  turn_ = outcome.turn;
  current_.run = nullptr;
  current_.outcome = nullptr;
}

// As if nothing had been foretold: all transfers of the run wait.
void DramHbm::take_back_run() {
  current_.outcome = nullptr;
  for (auto& transfers : waiting_) transfers.clear();
  for (std::size_t i = 0; i < current_.tickets.size(); ++i) {
    const Ticket ticket = current_.tickets[i];
    Transfer& transfer = transfers_[ticket];
    transfer.handed = 0;
    transfer.unfinished = transfer.bursts;
    transfer.finished = 0;
    transfer.told = nullptr;
    transfer.recorded = nullptr;
    std::fill(transfer.ends.begin(), transfer.ends.end(), dram::kNever);
    waiting_[current_.turns[i]].push_back(ticket);
  }
}

// From here on everything is simulated until the memory is at rest again.
void DramHbm::end_run() {
  if (current_.run != nullptr && !current_.simulated) take_back_run();
  current_.run = nullptr;
}

// Between runs.
void DramHbm::forget_runs() {
  for (Transfer& transfer : transfers_) {
    if (transfer.told == nullptr) continue;
    lay_out(transfer);
    const RememberedStreams::Ends& ends = *transfer.told->ends;
    for (std::size_t k = 0; k < ends.size(); ++k) transfer.ends[k] = transfer.told_from + ends[k];
    transfer.told = nullptr;
  }
  streams_.forget();
  patterns_.forget();
}

}  // namespace plena
