// Runs of transfers: which one is at hand, what is known of it, and when the memory catches up with
// what was foretold.
#include <algorithm>

#include "plena/timing/dram_hbm.h"

namespace plena {

namespace {

using dram::Tick;

// A run is rehearsed when it is met so often without being known: rehearsing what never comes again
// takes longer than simulating it.
constexpr std::uint32_t kMeetings = 2;
// Longer runs are simulated: each transfer that joins has the run rehearsed anew.
constexpr std::size_t kMostTransfers = 24;
constexpr std::size_t kMostPatterns = std::size_t{1} << 17;
// A memory that takes longer for a run will never be at rest.
constexpr Tick kMostTicks = Tick{1} << 22;

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
  if (current_.run != nullptr) {
    if (current_.outcome != nullptr) {
      if (edge >= current_.begin + current_.outcome->rest) follow_run();
    } else {
      simulate_to(edge - 1);
      if (controller_.at_rest() && next_edge() == dram::kNever) current_.run = nullptr;
    }
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
  const dram::Controller& found = current_.simulated ? stage_->controller_ : controller_;
  found.save_rest(pattern.banks, before.banks, current_.begin, current_.row_base, key_);
  const auto [run, is_new] = streams_.at(key_);
  if (is_new) {
    run->refreshes = before.refreshes;
    run->banks = before.banks;
    for (std::size_t i = 0; i < run->banks.size(); ++i) run->banks[i] |= pattern.banks[i];
  }
  if (current_.simulated) ++run->met;
  current_.run = run;
}

void DramHbm::add_to_run(Ticket ticket, std::size_t turn) {
  current_.tickets.push_back(ticket);
  current_.turns.push_back(turn);
  current_.settled = false;
}

// The run at hand with the refresh that falls into it. Its key adds what decides how all channels
// and banks are refreshed.
RememberedStreams::Run& DramHbm::refreshed(const RememberedStreams::Run& run) {
  key_.clear();
  key_.push_back(static_cast<std::int32_t>(run.number));
  key_.push_back(kRefresh);
  append(key_, controller_.refresh_due() - current_.begin);
  controller_.save_refresh(run.banks, current_.begin, key_);
  const auto [with_refresh, is_new] = streams_.at(key_);
  if (is_new) {
    with_refresh->refreshes = true;
    with_refresh->banks = run.banks;
  }
  return *with_refresh;
}

// ------------------------------------------------------------ what becomes of it

// After this every transfer of the run has ends, or all are simulated.
void DramHbm::settle_run() {
  if (current_.run == nullptr || current_.settled) return;
  current_.settled = true;
  if (!current_.simulated && !foretell_run()) simulate_run();
}

bool DramHbm::foretell_run() {
  if (!know_outcome(*current_.run)) return false;
  if (!current_.run->refreshes &&
      current_.begin + current_.run->outcome->rest >= controller_.refresh_due()) {
    if (controller_.settings().refresh != dram::RefreshMode::AllBank) return false;
    current_.run = &refreshed(*current_.run);
    if (!know_outcome(*current_.run)) return false;
  }
  current_.outcome = current_.run->outcome.get();
  for (auto& transfers : waiting_) transfers.clear();
  for (std::size_t i = 0; i < current_.tickets.size(); ++i) {
    const RememberedStreams::Transfer& known = current_.outcome->transfers[i];
    Transfer& transfer = transfers_[current_.tickets[i]];
    transfer.handed = transfer.bursts;
    transfer.unfinished = 0;
    transfer.accepted = current_.begin + known.accepted;
    transfer.finished = current_.begin + known.finished;
    transfer.told = &known;
    transfer.told_from = current_.begin;
  }
  return true;
}

bool DramHbm::know_outcome(RememberedStreams::Run& run) {
  if (run.outcome != nullptr) return true;
  return ++run.met >= kMeetings && rehearse(run);
}

// Transfers that join are still noted, so that the whole run is met.
void DramHbm::simulate_run() {
  stage().controller_.take_rest(controller_, true);
  take_back_run();
  current_.simulated = true;
}

// The memory does what the run did to it.
void DramHbm::follow_run() {
  RememberedStreams::Outcome& outcome = *current_.run->outcome;
  ++outcome.times;
  for (const Ticket ticket : current_.tickets) bursts_remembered_ += transfers_[ticket].bursts;
  const Tick rest = current_.begin + outcome.rest;
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

// ------------------------------------------------------------ rehearsal

DramHbm& DramHbm::stage() {
  if (stage_ == nullptr)
    stage_ = std::make_unique<DramHbm>(*dram::Controller::make(controller_.settings()), 1);
  return *stage_;
}

// Plays the run on the stage and remembers it; false if it never ends.
bool DramHbm::rehearse(RememberedStreams::Run& run) {
  DramHbm& stage = this->stage();
  stage.controller_.take_rest(controller_, run.refreshes);
  stage.adopt_run(*this);
  const Tick begin = current_.begin;
  const dram::ActivityCounts before = stage.controller_.activity();
  if (!stage.bring_to_rest(run.refreshes)) {
    stage_.reset();
    return false;
  }
  const Tick rest = stage.controller_.now();

  RememberedStreams::Outcome outcome;
  outcome.rest = rest - begin;
  outcome.edge = stage.edge_ - begin;
  outcome.turn = stage.turn_;
  if (run.refreshes) {
    outcome.refresh_due = stage.controller_.refresh_due() - begin;
    stage.controller_.save_refreshed(rest, current_.row_base, outcome.memory);
  } else {
    stage.controller_.save_rest(run.banks, {}, rest, current_.row_base, outcome.memory);
  }
  outcome.activity = stage.controller_.activity().since(before);
  outcome.latencies = stage.collect_latencies();
  for (std::size_t i = 0; i < stage.transfers_.size(); ++i) {
    const Transfer& transfer = stage.transfers_[i];
    auto& known = outcome.transfers.emplace_back();
    known.accepted = transfer.accepted - begin;
    known.finished = transfer.finished - begin;
    RememberedStreams::Ends ends;
    ends.reserve(transfer.ends.size());
    for (const Tick end : transfer.ends) ends.push_back(static_cast<std::int32_t>(end - begin));
    // What joins late changes nothing of what came early.
    const bool shared = current_.outcome != nullptr && i < current_.outcome->transfers.size() &&
                        *current_.outcome->transfers[i].ends == ends;
    known.ends = shared ? current_.outcome->transfers[i].ends
                        : std::make_shared<const RememberedStreams::Ends>(std::move(ends));
  }
  streams_.remember(run, std::move(outcome));
  return true;
}

// The run that waits in another memory.
void DramHbm::adopt_run(const DramHbm& other) {
  turn_ = other.turn_;
  edge_ = other.edge_;
  transfers_.resize(other.current_.tickets.size());
  for (auto& transfers : waiting_) transfers.clear();
  for (std::size_t i = 0; i < transfers_.size(); ++i) {
    const Transfer& original = other.transfers_[other.current_.tickets[i]];
    Transfer& transfer = transfers_[i];
    transfer.pattern = original.pattern;
    transfer.start = original.start;
    transfer.bursts = original.bursts;
    transfer.handed = 0;
    transfer.unfinished = original.bursts;
    transfer.finished = 0;
    transfer.laid_out = false;
    waiting_[other.current_.turns[i]].push_back(static_cast<Ticket>(i));
  }
}

// Hands everything over and lets time go on until the memory is at rest, and a tick further: by
// then the controller has turned from reads to writes, if it will.
bool DramHbm::bring_to_rest(bool refreshes) {
  const Tick due = controller_.refresh_due();
  for (Tick edge = next_edge(); edge != dram::kNever; edge = next_edge()) {
    controller_.advance_to(edge);
    hand_over(edge);
  }
  const Tick latest = controller_.now() + kMostTicks;
  while (controller_.unfinished() != 0) {
    const Tick next = controller_.next_event();
    if (next > latest) return false;
    controller_.advance_to(next);
  }
  if (refreshes) {
    controller_.advance_to(std::max(controller_.now(), due));
    while (!controller_.at_rest() && controller_.next_event() <= latest)
      controller_.advance_to(controller_.next_event());
  }
  controller_.advance_to(controller_.now() + 1);
  return controller_.at_rest();
}

// Of everything that finished: how often each latency occurred, by is_write.
std::array<std::vector<std::pair<Tick, std::uint64_t>>, 2> DramHbm::collect_latencies() {
  std::array<std::vector<std::uint64_t>, 2> times;
  controller_.take_completions([&](const dram::Completion& completion) {
    note_completion(completion);
    auto& counts = times[completion.is_write];
    const auto latency = static_cast<std::size_t>(completion.finished - completion.accepted);
    if (counts.size() <= latency) counts.resize(latency + 1);
    ++counts[latency];
  });
  std::array<std::vector<std::pair<Tick, std::uint64_t>>, 2> latencies;
  for (std::size_t i = 0; i < times.size(); ++i) {
    for (std::size_t latency = 0; latency < times[i].size(); ++latency) {
      if (times[i][latency] != 0)
        latencies[i].emplace_back(static_cast<Tick>(latency), times[i][latency]);
    }
  }
  return latencies;
}

}  // namespace plena
