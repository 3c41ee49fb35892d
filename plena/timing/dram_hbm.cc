#include "plena/timing/dram_hbm.h"

#include <algorithm>
#include <functional>

namespace plena {

namespace {

using dram::kNever;
using dram::Tick;

// A memory that does nothing for a second while somebody waits will never do anything.
constexpr std::uint64_t kPatienceFs = 1'000'000'000'000'000;

// Commands whose listener is called once.
constexpr std::size_t kToldTogether = 256;

std::uint64_t tick_fs(const dram::Controller& controller) {
  return static_cast<std::uint64_t>(controller.settings().preset.tck_ps) * 1000 /
         static_cast<std::uint64_t>(controller.ticks_per_ck());
}

std::size_t turn_of(Unit unit) {
  return static_cast<std::size_t>(unit) - static_cast<std::size_t>(Unit::LoadM);
}

}  // namespace

DramHbm::DramHbm(dram::Controller controller, std::uint32_t clock_mhz)
    : controller_(std::move(controller)),
      clock_(tick_fs(controller_), clock_mhz),
      read_latency_(dram::Gaps(controller_.settings().preset).read_latency) {}

PeakRate DramHbm::peak() const {
  const dram::DramPreset& preset = controller_.settings().preset;
  const std::uint64_t bursts =
      std::uint64_t{controller_.settings().channels} * preset.organisation.pseudo_channels;
  return clock_.rate(bursts, static_cast<std::uint64_t>(preset.timings.nBL * preset.ticks_per_ck));
}

// ------------------------------------------------------------ transfers

Ticket DramHbm::take_ticket() {
  if (replay_.outcome == nullptr) {
    const auto over = [&](Ticket ticket) { return transfers_[ticket].unfinished == 0; };
    const auto done = std::partition(released_.begin(), released_.end(), std::not_fn(over));
    free_.insert(free_.end(), done, released_.end());
    released_.erase(done, released_.end());
  }
  if (free_.empty()) {
    free_.push_back(static_cast<Ticket>(transfers_.size()));
    transfers_.emplace_back();
  }
  const Ticket ticket = free_.back();
  free_.pop_back();
  return ticket;
}

Ticket DramHbm::start(const TransferStart& start, const TransferRows& rows) {
  const Tick per_ck = controller_.ticks_per_ck();
  const Tick tick = static_cast<Tick>(clock_.tick_at(start.issue + start.before));
  const Tick first_edge = (tick + per_ck - 1) / per_ck * per_ck;
  if (replay_.outcome != nullptr) {
    const bool behind = first_edge >= replay_.begin + replay_.outcome->rest;
    behind ? follow() : take_back();
  }
  // What is remembered supposes that time does not go back.
  remembers_ = remembers_ && first_edge >= latest_start_;
  latest_start_ = first_edge;

  const Ticket ticket = take_ticket();
  Transfer& transfer = transfers_[ticket];
  lay_out(rows, transfer);
  const auto bursts = static_cast<std::uint32_t>(transfer.addresses.size());
  (rows.write ? traffic_.written : traffic_.read) += bursts;
  transfer.pattern = rows;
  transfer.told = nullptr;
  transfer.banks.assign(controller_.settings().channels, 0);
  for (const std::uint64_t address : transfer.addresses) {
    const dram::BurstPlace place = controller_.place(address);
    transfer.banks[place.channel] |= dram::only(place.bank);
  }
  transfer.after = start.after;
  transfer.handed = 0;
  transfer.unfinished = bursts;
  transfer.finished = 0;
  transfer.start = first_edge;
  waiting_[turn_of(start.unit)].push_back(ticket);
  return ticket;
}

void DramHbm::lay_out(const TransferRows& rows, Transfer& transfer) {
  transfer.addresses.clear();
  transfer.rows.clear();
  std::uint32_t begin = 0;
  for_each_burst(
      rows, [&](std::uint64_t address, std::uint32_t) { transfer.addresses.push_back(address); },
      [&](std::uint32_t index) {
        const HbmRow row = rows.row(index);
        const auto end = static_cast<std::uint32_t>(transfer.addresses.size());
        const std::uint64_t first = row.element_address / kBurstBytes * kBurstBytes;
        const bool shares = begin > 0 && transfer.addresses[begin - 1] == first;
        transfer.rows.push_back({shares ? begin - 1 : begin, end});
        begin = end;
      });
  transfer.ends.assign(transfer.addresses.size(), kNever);
}

// ------------------------------------------------------------ time

// The clock edge at which the next burst is offered.
Tick DramHbm::next_edge() const {
  Tick earliest = kNever;
  for (const auto& transfers : waiting_) {
    if (!transfers.empty()) earliest = std::min(earliest, transfers_[transfers.front()].start);
  }
  return earliest == kNever ? kNever : std::max(earliest, edge_);
}

bool DramHbm::offers(std::size_t unit) const {
  const auto& transfers = waiting_[unit];
  return !transfers.empty() && transfers_[transfers.front()].start <= edge_;
}

bool DramHbm::offers_alone(std::size_t unit) const {
  for (std::size_t other = 0; other < waiting_.size(); ++other)
    if (other != unit && offers(other)) return false;
  return true;
}

// Hands bursts over at a clock edge, in turns, until a channel refuses; the burst that was refused
// is the first of the edge at which its channel has room.
void DramHbm::hand_over(Tick edge) {
  edge_ = edge;
  std::size_t without = 0;  // units in a row that have nothing to offer at this edge
  for (; without < waiting_.size(); turn_ = (turn_ + 1) % waiting_.size()) {
    if (!offers(turn_)) {
      ++without;
      continue;
    }
    without = 0;
    const Tick accepted = hand_over_front(waiting_[turn_], offers_alone(turn_));
    if (accepted != edge_) {
      edge_ = accepted;
      turn_ = (turn_ + 1) % waiting_.size();
      return;
    }
  }
  edge_ += controller_.ticks_per_ck();
}

// Hands one burst of the oldest transfer over, or, with no other unit to take turns with, as many
// as are accepted at this edge and the one that is not. Returns when the last was accepted.
Tick DramHbm::hand_over_front(std::deque<Ticket>& transfers, bool alone) {
  const Ticket ticket = transfers.front();
  Transfer& transfer = transfers_[ticket];
  const auto bursts = static_cast<std::uint32_t>(transfer.addresses.size());
  Tick accepted = edge_;
  do {
    const dram::Request request{.address = transfer.addresses[transfer.handed],
                                .id = std::uint64_t{ticket} << 32 | transfer.handed,
                                .is_write = transfer.pattern.write};
    accepted = controller_.submit(request, edge_);
    ++transfer.handed;
  } while (alone && accepted == edge_ && transfer.handed < bursts);
  if (transfer.handed == bursts) {
    transfer.accepted = accepted;
    transfers.pop_front();
  }
  return accepted;
}

void DramHbm::set_listener(TimelineListener* listener) {
  if (listener != nullptr && replay_.outcome != nullptr) take_back();
  tell_commands();
  listener_ = listener;
  controller_.set_log(listener == nullptr ? nullptr : &log_);
}

void DramHbm::tell_commands() {
  if (!log_.empty()) listener_->commanded(log_, clock_);
  log_.clear();
}

void DramHbm::collect() {
  if (log_.size() >= kToldTogether) [[unlikely]]
    tell_commands();
  controller_.take_completions([&](const dram::Completion& completion) {
    Transfer& transfer = transfers_[completion.id >> 32];
    transfer.ends[static_cast<std::uint32_t>(completion.id)] = completion.finished;
    transfer.finished = std::max(transfer.finished, completion.finished);
    --transfer.unfinished;
  });
}

// While bursts wait for their edge nothing else can be handed over before it, so that all channels
// may go on that far at once. With nothing left to hand over they go on to the limit of the
// question, or without one from event to event: no further than the answer, which for reads lies
// at least their latency behind the command that settles it.
template <class Done>
void DramHbm::run(Done&& done, Tick limit, Tick beyond_event) {
  if (failure_ || replay_.outcome != nullptr || done()) return;
  const Tick patience = static_cast<Tick>(kPatienceFs / tick_fs(controller_));
  Tick waiting_since = kNever;
  do {
    const Tick edge = next_edge();
    if (edge <= limit && edge != kNever) {
      controller_.advance_to(edge);
      collect();
      if (done() || recall(edge)) return;
      hand_over(edge);
      continue;
    }
    if (limit != kNever) {
      controller_.advance_to(limit);
      return collect();
    }
    const Tick next = controller_.next_event();
    if (next == kNever) collect();
    if (done()) return;
    waiting_since = std::min(waiting_since, next);
    if (next == kNever || next - waiting_since > patience) return give_up();
    controller_.advance_to(next + beyond_event);
    collect();
  } while (!done());
}

void DramHbm::give_up() {
  failure_ = Error{ErrorCode::Trap,
                   fmt::format("the memory never answers: {} bursts have waited since tick {}",
                               controller_.unfinished(), edge_),
                   {},
                   {}};
}

// ------------------------------------------------------------ runs

// Uses the outcome of what waits, if it is known or can be rehearsed. Every transfer has ends then.
bool DramHbm::recall(Tick edge) {
  if (!choose_run()) return false;
  describe(edge);
  RememberedStreams::Outcome* outcome = streams_.find(key_);
  if (outcome == nullptr) outcome = rehearse(edge);
  if (outcome == nullptr || edge + outcome->rest >= controller_.refresh_due()) return false;
  foretell(*outcome, edge);
  return true;
}

// All that waits, at the start of a run; false where nothing can be remembered.
bool DramHbm::choose_run() {
  constexpr std::size_t kMostTransfers = 24;  // each that joins has the run rehearsed anew
  if (!remembers_ || listener_ != nullptr || !controller_.at_rest()) return false;
  replay_.tickets.clear();
  replay_.turns.clear();
  for (std::size_t turn = 0; turn < waiting_.size(); ++turn) {
    for (const Ticket ticket : waiting_[turn]) {
      if (transfers_[ticket].handed != 0) return false;
      replay_.tickets.push_back(ticket);
      replay_.turns.push_back(turn);
    }
  }
  return replay_.tickets.size() <= kMostTransfers;
}

namespace {

void append(RememberedStreams::Key& key, std::uint64_t word) {
  key.push_back(static_cast<std::int32_t>(word));
  key.push_back(static_cast<std::int32_t>(word >> 32));
}

}  // namespace

// The key of a run: whose transfers, when, what they ask for relative to its first row, and the
// memory's state in the banks they touch.
void DramHbm::describe(Tick edge) {
  const std::uint64_t period = controller_.row_period();
  const TransferRows& first = transfers_[replay_.tickets.front()].pattern;
  replay_.row_base = static_cast<std::uint32_t>(first.base / period);
  replay_.banks.assign(controller_.settings().channels, 0);
  key_.clear();
  for (std::size_t i = 0; i < replay_.tickets.size(); ++i) {
    const Transfer& transfer = transfers_[replay_.tickets[i]];
    const TransferRows& rows = transfer.pattern;
    append(key_, static_cast<std::uint64_t>(std::max<Tick>(transfer.start - edge, 0)));
    append(key_, rows.base - first.base / period * period);
    for (const std::uint64_t word : {rows.first, rows.stride, rows.scale}) append(key_, word);
    append(key_, std::uint64_t{rows.count} << 32 | rows.length);
    append(key_, std::uint64_t{rows.width} << 32 | rows.block);
    append(key_, replay_.turns[i] << 3 | (rows.write ? 4U : 0U) | (rows.in_bytes ? 2U : 0U) |
                     (rows.whole_codes ? 1U : 0U));
    for (std::size_t c = 0; c < transfer.banks.size(); ++c) replay_.banks[c] |= transfer.banks[c];
  }
  append(key_, replay_.tickets.size() > 1 ? turn_ : waiting_.size());
  controller_.save_rest(replay_.banks, edge, replay_.row_base, key_);
}

// Plays the run on the stage, where no refresh comes, and remembers it; null if it never ends.
RememberedStreams::Outcome* DramHbm::rehearse(Tick edge) {
  if (stage_ == nullptr) {
    dram::DramSettings settings = controller_.settings();
    settings.refresh = dram::RefreshMode::None;
    stage_ = std::make_unique<DramHbm>(std::move(*dram::Controller::make(settings)), 1);
  }
  DramHbm& stage = *stage_;
  stage.adopt_run(*this);
  const dram::ActivityCounts before = stage.controller_.activity();
  for (Tick next = edge; next != kNever; next = stage.next_edge()) {
    stage.controller_.advance_to(next);
    stage.hand_over(next);
  }
  stage.controller_.finish_all();

  RememberedStreams::Outcome outcome;
  // A tick later the controller has turned from reads to writes, if it will.
  const Tick rest = stage.controller_.now() + 1;
  stage.controller_.advance_to(rest);
  if (!stage.controller_.at_rest()) return nullptr;
  outcome.rest = rest - edge;
  outcome.edge = stage.edge_ - edge;
  outcome.turn = stage.turn_;
  stage.controller_.save_rest(replay_.banks, rest, replay_.row_base, outcome.banks);
  outcome.activity = stage.controller_.activity().since(before);
  std::array<std::vector<std::uint64_t>, 2> latencies;  // how often each occurred, by is_write
  stage.controller_.take_completions([&](const dram::Completion& completion) {
    Transfer& transfer = stage.transfers_[completion.id >> 32];
    transfer.ends[static_cast<std::uint32_t>(completion.id)] = completion.finished;
    transfer.finished = std::max(transfer.finished, completion.finished);
    const auto latency = static_cast<std::size_t>(completion.finished - completion.accepted);
    auto& times = latencies[completion.is_write];
    if (times.size() <= latency) times.resize(latency + 1);
    ++times[latency];
  });
  for (std::size_t i = 0; i < latencies.size(); ++i) {
    for (std::size_t latency = 0; latency < latencies[i].size(); ++latency) {
      if (latencies[i][latency] != 0)
        outcome.latencies[i].emplace_back(static_cast<Tick>(latency), latencies[i][latency]);
    }
  }
  for (const Transfer& transfer : stage.transfers_) {
    auto& known = outcome.transfers.emplace_back();
    known.accepted = transfer.accepted - edge;
    known.finished = transfer.finished - edge;
    known.ends.reserve(transfer.ends.size());
    for (const Tick end : transfer.ends)
      known.ends.push_back(static_cast<std::int32_t>(end - edge));
  }
  return streams_.remember(key_, std::move(outcome));
}

// The run that waits in another memory, with what it finds there.
void DramHbm::adopt_run(const DramHbm& other) {
  controller_.take_rest(other.controller_);
  turn_ = other.turn_;
  edge_ = other.edge_;
  transfers_.clear();
  for (auto& transfers : waiting_) transfers.clear();
  for (std::size_t i = 0; i < other.replay_.tickets.size(); ++i) {
    waiting_[other.replay_.turns[i]].push_back(static_cast<Ticket>(i));
    transfers_.push_back(other.transfers_[other.replay_.tickets[i]]);
  }
}

void DramHbm::foretell(RememberedStreams::Outcome& outcome, Tick edge) {
  replay_.outcome = &outcome;
  replay_.begin = edge;
  ++outcome.times;
  for (auto& transfers : waiting_) transfers.clear();
  for (std::size_t i = 0; i < replay_.tickets.size(); ++i) {
    const RememberedStreams::Transfer& known = outcome.transfers[i];
    Transfer& transfer = transfers_[replay_.tickets[i]];
    transfer.handed = static_cast<std::uint32_t>(transfer.addresses.size());
    transfer.unfinished = 0;
    transfer.accepted = edge + known.accepted;
    transfer.finished = edge + known.finished;
    transfer.told = &known;
  }
}

// Writes down the ends of bursts where so far only the run's outcome has them.
void DramHbm::tell_ends(Transfer& transfer) const {
  if (transfer.told == nullptr) return;
  const std::vector<std::int32_t>& ends = transfer.told->ends;
  for (std::size_t k = 0; k < ends.size(); ++k) transfer.ends[k] = replay_.begin + ends[k];
  transfer.told = nullptr;
}

// The memory does what the run did to it.
void DramHbm::follow() {
  const RememberedStreams::Outcome& outcome = *replay_.outcome;
  for (const Ticket ticket : replay_.tickets) tell_ends(transfers_[ticket]);
  for (const RememberedStreams::Transfer& known : outcome.transfers)
    bursts_remembered_ += known.ends.size();
  controller_.load_rest(replay_.banks, replay_.begin + outcome.rest, replay_.row_base,
                        outcome.banks);
  edge_ = replay_.begin + outcome.edge;
  turn_ = outcome.turn;
  replay_.outcome = nullptr;
}

void DramHbm::take_back() {
  --replay_.outcome->times;
  replay_.outcome = nullptr;
  for (std::size_t i = 0; i < replay_.tickets.size(); ++i) {
    const Ticket ticket = replay_.tickets[i];
    Transfer& transfer = transfers_[ticket];
    transfer.handed = 0;
    transfer.unfinished = static_cast<std::uint32_t>(transfer.addresses.size());
    transfer.finished = 0;
    transfer.told = nullptr;
    std::fill(transfer.ends.begin(), transfer.ends.end(), kNever);
    waiting_[replay_.turns[i]].push_back(ticket);
  }
}

// ------------------------------------------------------------ answers

bool DramHbm::rows_known(const Transfer& transfer, std::uint32_t first, std::uint32_t last) {
  return std::none_of(transfer.ends.begin() + transfer.rows[first].begin,
                      transfer.ends.begin() + transfer.rows[last].end,
                      [](Tick end) { return end == kNever; });
}

Cycle DramHbm::delivered(Ticket ticket, std::uint32_t first_row, std::uint32_t last_row) {
  Transfer& transfer = transfers_[ticket];
  const bool all = first_row == 0 && last_row + 1 == transfer.rows.size();
  if (all) return complete(ticket);
  run([&] { return transfer.unfinished == 0 || rows_known(transfer, first_row, last_row); }, kNever,
      beyond_event(transfer));
  if (failure_) return 0;
  tell_ends(transfer);
  const Tick end = *std::max_element(transfer.ends.begin() + transfer.rows[first_row].begin,
                                     transfer.ends.begin() + transfer.rows[last_row].end);
  return clock_.cycle_at(static_cast<std::uint64_t>(end)) + transfer.after;
}

Cycle DramHbm::accepted(Ticket ticket) {
  const Transfer& transfer = transfers_[ticket];
  run([&] { return transfer.handed == transfer.addresses.size(); });
  return failure_ ? 0 : clock_.cycle_at(static_cast<std::uint64_t>(transfer.accepted));
}

Cycle DramHbm::complete(Ticket ticket) {
  const Transfer& transfer = transfers_[ticket];
  run([&] { return transfer.unfinished == 0; }, kNever, beyond_event(transfer));
  return failure_ ? 0 : complete_cycle(transfer);
}

// The last tick that a transfer which issues at `horizon` or later cannot change any more.
Tick DramHbm::last_before_issue_after(Cycle horizon) const {
  return static_cast<Tick>(clock_.tick_at(horizon + 1)) - 1;
}

bool DramHbm::accepted_by(Ticket ticket, Cycle horizon) {
  const Transfer& transfer = transfers_[ticket];
  const auto done = [&] { return transfer.handed == transfer.addresses.size(); };
  run(done, last_before_issue_after(horizon));
  return failure_ ||
         (done() && clock_.cycle_at(static_cast<std::uint64_t>(transfer.accepted)) <= horizon);
}

bool DramHbm::complete_by(Ticket ticket, Cycle horizon) {
  const Transfer& transfer = transfers_[ticket];
  run([&] { return transfer.unfinished == 0; }, last_before_issue_after(horizon));
  return failure_ || (transfer.unfinished == 0 && complete_cycle(transfer) <= horizon);
}

std::uint64_t DramHbm::queued_bursts() const {
  std::uint64_t queued = 0;
  for (std::uint32_t channel = 0; channel < controller_.settings().channels; ++channel)
    queued += controller_.queued(channel, false) + controller_.queued(channel, true);
  return queued;
}

// Completions become known in the order of their last commands, which for reads is the order of
// their ends as well; a write ends with its command.
Cycle DramHbm::first_complete(std::span<const Ticket> tickets) {
  const auto earliest = [&] {
    Cycle first = ~Cycle{0};
    for (const Ticket ticket : tickets) {
      if (transfers_[ticket].unfinished == 0)
        first = std::min(first, complete_cycle(transfers_[ticket]));
    }
    return first;
  };
  run([&] { return earliest() != ~Cycle{0}; });
  if (failure_) return 0;
  // A store that ends with its last command may yet be done before the data of a load whose
  // commands are all sent.
  run([] { return false; }, static_cast<Tick>(clock_.tick_at(earliest())));
  return failure_ ? 0 : earliest();
}

}  // namespace plena
