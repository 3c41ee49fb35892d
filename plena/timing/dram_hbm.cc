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
  if (current_.run == nullptr && !released_.empty()) {
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
  // What is remembered supposes that time does not go back.
  remembers_ = remembers_ && first_edge >= latest_start_;
  latest_start_ = first_edge;
  pass_time_to(first_edge);

  const BurstPattern& pattern = patterns_.of(rows, controller_);
  (rows.write ? traffic_.written : traffic_.read) += pattern.bursts;
  const Ticket ticket = take_ticket();
  Transfer& transfer = transfers_[ticket];
  transfer.pattern = rows;
  transfer.after = start.after;
  transfer.start = first_edge;
  transfer.bursts = pattern.bursts;
  transfer.handed = 0;
  transfer.unfinished = pattern.bursts;
  transfer.finished = 0;
  transfer.told = nullptr;
  transfer.recorded = nullptr;
  transfer.laid_out = false;
  waiting_[turn_of(start.unit)].push_back(ticket);
  note_start(ticket, turn_of(start.unit), pattern);
  return ticket;
}

void DramHbm::lay_out(Transfer& transfer) {
  if (transfer.laid_out) return;
  transfer.laid_out = true;
  transfer.addresses.clear();
  transfer.rows.clear();
  std::uint32_t begin = 0;
  for_each_burst(
      transfer.pattern,
      [&](std::uint64_t address, std::uint32_t) { transfer.addresses.push_back(address); },
      [&](std::uint32_t, const HbmRow& row) {
        const auto end = static_cast<std::uint32_t>(transfer.addresses.size());
        const std::uint64_t first = row.element_address / kBurstBytes * kBurstBytes;
        const bool shares = begin > 0 && transfer.addresses[begin - 1] == first;
        transfer.rows.push_back({shares ? begin - 1 : begin, end});
        begin = end;
      });
  transfer.ends.assign(transfer.bursts, kNever);
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
  lay_out(transfer);
  Tick accepted = edge_;
  do {
    const dram::Request request{.address = transfer.addresses[transfer.handed],
                                .id = std::uint64_t{ticket} << 32 | transfer.handed,
                                .is_write = transfer.pattern.write};
    accepted = controller_.submit(request, edge_);
    ++transfer.handed;
  } while (alone && accepted == edge_ && transfer.handed < transfer.bursts);
  if (transfer.handed == transfer.bursts) {
    transfer.accepted = accepted;
    transfers.pop_front();
  }
  return accepted;
}

void DramHbm::set_listener(TimelineListener* listener) {
  if (listener != nullptr) end_run();
  tell_commands();
  listener_ = listener;
  controller_.set_log(listener == nullptr ? nullptr : &log_);
}

void DramHbm::tell_commands() {
  if (!log_.empty()) listener_->commanded(log_, clock_);
  log_.clear();
}

void DramHbm::note_completion(const dram::Completion& completion) {
  Transfer& transfer = transfers_[completion.id >> 32];
  transfer.ends[static_cast<std::uint32_t>(completion.id)] = completion.finished;
  transfer.finished = std::max(transfer.finished, completion.finished);
  --transfer.unfinished;
}

void DramHbm::collect() {
  if (log_.size() >= kToldTogether) [[unlikely]]
    tell_commands();
  const bool of_run = current_.run != nullptr && current_.simulated;
  controller_.take_completions([&](const dram::Completion& completion) {
    note_completion(completion);
    if (of_run) note_latency(completion);
  });
}

// While bursts wait for their edge nothing else can be handed over before it, so that all channels
// may go on that far at once. With nothing left to hand over they go on to the limit of the
// question, or without one from event to event: no further than the answer, which for reads lies
// at least their latency behind the command that settles it.
template <class Done>
void DramHbm::simulate(Done&& done, Tick limit, Tick beyond_event) {
  const Tick patience = static_cast<Tick>(kPatienceFs / tick_fs(controller_));
  Tick waiting_since = kNever;
  do {
    const Tick edge = next_edge();
    if (edge <= limit && edge != kNever) {
      controller_.advance_to(edge);
      collect();
      if (done()) return;
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

template <class Done>
void DramHbm::run(const Transfer* transfer, Done&& done, Tick limit, Tick beyond_event) {
  if (failure_) return;
  settle_run();
  if (done()) return;
  if (current_.outcome != nullptr) {
    const bool seen = limit != kNever && limit <= current_.begin + current_.outcome->until;
    if (current_.outcome->whole || seen) return;
    simulate_run();
  }
  if (transfer != nullptr && listener_ == nullptr) {
    hand_over_all(*transfer, limit);
    collect();
    if (done()) return;
  }
  simulate(done, limit, beyond_event);
}

void DramHbm::hand_over_all(const Transfer& transfer, Tick limit) {
  while (transfer.handed < transfer.bursts) {
    const Tick edge = next_edge();
    if (edge > limit || edge == kNever) return;
    hand_over(edge);
  }
}

void DramHbm::give_up() {
  failure_ = Error{ErrorCode::Trap,
                   fmt::format("the memory never answers: {} bursts have waited since tick {}",
                               controller_.unfinished(), edge_),
                   {},
                   {}};
}

// ------------------------------------------------------------ answers

bool DramHbm::rows_known(Transfer& transfer, std::uint32_t first, std::uint32_t last) {
  lay_out(transfer);
  const auto all_known = [&](const auto& ends, auto unknown) {
    return std::find(ends.begin() + transfer.rows[first].begin,
                     ends.begin() + transfer.rows[last].end,
                     unknown) == ends.begin() + transfer.rows[last].end;
  };
  return transfer.told != nullptr ? all_known(*transfer.told->ends, RememberedStreams::kUnknown)
                                  : all_known(transfer.ends, kNever);
}

Tick DramHbm::last_end(Transfer& transfer, std::uint32_t first, std::uint32_t last) {
  lay_out(transfer);
  const auto begin = transfer.rows[first].begin;
  const auto end = transfer.rows[last].end;
  if (transfer.told == nullptr)
    return *std::max_element(transfer.ends.begin() + begin, transfer.ends.begin() + end);
  const RememberedStreams::Ends& ends = *transfer.told->ends;
  return transfer.told_from + *std::max_element(ends.begin() + begin, ends.begin() + end);
}

Cycle DramHbm::delivered(Ticket ticket, std::uint32_t first_row, std::uint32_t last_row) {
  Transfer& transfer = transfers_[ticket];
  if (first_row == 0 && last_row + 1 == transfer.pattern.count) return complete(ticket);
  run(
      nullptr,
      [&] { return transfer.unfinished == 0 || rows_known(transfer, first_row, last_row); }, kNever,
      beyond_event(transfer));
  if (failure_) return 0;
  const Tick end = last_end(transfer, first_row, last_row);
  return clock_.cycle_at(static_cast<std::uint64_t>(end)) + transfer.after;
}

Cycle DramHbm::accepted(Ticket ticket) {
  const Transfer& transfer = transfers_[ticket];
  run(&transfer, [&] { return transfer.handed == transfer.bursts; });
  return failure_ ? 0 : clock_.cycle_at(static_cast<std::uint64_t>(transfer.accepted));
}

Cycle DramHbm::complete(Ticket ticket) {
  const Transfer& transfer = transfers_[ticket];
  run(&transfer, [&] { return transfer.unfinished == 0; }, kNever, beyond_event(transfer));
  return failure_ ? 0 : complete_cycle(transfer);
}

// The last tick that a transfer which issues at `horizon` or later cannot change any more.
Tick DramHbm::last_before_issue_after(Cycle horizon) const {
  return static_cast<Tick>(clock_.tick_at(horizon + 1)) - 1;
}

bool DramHbm::accepted_by(Ticket ticket, Cycle horizon) {
  const Transfer& transfer = transfers_[ticket];
  const auto done = [&] { return transfer.handed == transfer.bursts; };
  run(&transfer, done, last_before_issue_after(horizon));
  return failure_ ||
         (done() && clock_.cycle_at(static_cast<std::uint64_t>(transfer.accepted)) <= horizon);
}

bool DramHbm::complete_by(Ticket ticket, Cycle horizon) {
  const Transfer& transfer = transfers_[ticket];
  run(&transfer, [&] { return transfer.unfinished == 0; }, last_before_issue_after(horizon));
  return failure_ || (transfer.unfinished == 0 && complete_cycle(transfer) <= horizon);
}

void DramHbm::catch_up() {
  settle_run();
  if (current_.outcome == nullptr || current_.outcome->whole) return;
  simulate_run();
  for (const Ticket ticket : current_.tickets) complete(ticket);
}

std::optional<dram::ChannelStatistics> DramHbm::controller_statistics() const {
  dram::ChannelStatistics all = controller_.statistics();
  streams_.add_to(all);
  if (current_.outcome != nullptr && current_.outcome->whole)
    RememberedStreams::add_to(all, *current_.outcome, 1);
  return all;
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
  run(nullptr, [&] { return earliest() != ~Cycle{0}; });
  if (failure_) return 0;
  // A store that ends with its last command may yet be done before the data of a load whose
  // commands are all sent.
  run(nullptr, [] { return false; }, static_cast<Tick>(clock_.tick_at(earliest())));
  return failure_ ? 0 : earliest();
}

}  // namespace plena
