#include "plena/timing/dram_hbm.h"

#include <algorithm>
#include <functional>
#include <tuple>

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
      open_row_reach_(controller_.open_row_reach()),
      read_latency_(dram::Gaps(controller_.settings().preset).read_latency),
      remembers_(controller_.has_states()),
      names_(controller_.settings().channels) {}

PeakRate DramHbm::peak() const {
  const dram::DramPreset& preset = controller_.settings().preset;
  const std::uint64_t bursts =
      std::uint64_t{controller_.settings().channels} * preset.organisation.pseudo_channels;
  return clock_.rate(bursts, static_cast<std::uint64_t>(preset.timings.nBL * preset.ticks_per_ck));
}

// ------------------------------------------------------------ transfers

Ticket DramHbm::take_ticket() {
  if (!released_.empty()) {
    const auto over = [&](Ticket ticket) {
      return transfers_[ticket].progress.unfinished == 0 && !is_live(transfers_[ticket]);
    };
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

  const Ticket ticket = take_ticket();
  Transfer& transfer = transfers_[ticket];
  std::tie(transfer.pattern, transfer.origin) = patterns_.of(rows, controller_);
  transfer.write = rows.write;
  transfer.turn = turn_of(start.unit);
  transfer.after = start.after;
  transfer.start = first_edge;
  transfer.bursts = static_cast<std::uint32_t>(transfer.pattern->bursts.size());
  transfer.progress = {.unfinished = transfer.bursts};
  transfer.ends.clear();
  transfer.told.clear();
  (rows.write ? traffic_.written : traffic_.read) += transfer.bursts;
  join(ticket);
  return ticket;
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
  const Transfer& transfer = transfers_[ticket];
  Progress& progress = transfers_[ticket].progress;
  Tick accepted = edge_;
  do {
    const dram::Request request{
        .address = transfer.pattern->address(progress.handed, transfer.origin),
        .id = std::uint64_t{ticket} << 32 | progress.handed,
        .is_write = transfer.write};
    accepted = controller_.submit(request, edge_);
    ++progress.handed;
  } while (alone && accepted == edge_ && progress.handed < transfer.bursts);
  if (progress.handed == transfer.bursts) {
    progress.accepted = accepted;
    transfers.pop_front();
  }
  return accepted;
}

void DramHbm::set_listener(TimelineListener* listener) {
  if (listener != nullptr) stop_remembering();
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
  const auto burst = static_cast<std::uint32_t>(completion.id);
  transfer.ends[burst] = static_cast<std::int32_t>(completion.finished - transfer.start);
  transfer.progress.finished = std::max(transfer.progress.finished, completion.finished);
  --transfer.progress.unfinished;
  if (current_.state == nullptr) return;
  const Tick since = completion.finished - current_.begin;
  if (since > RememberedStates::kMostTicks) return stop_remembering();
  current_.ends[transfer.place].push_back(
      {.end = static_cast<std::int16_t>(since), .burst = static_cast<std::uint16_t>(burst)});
  auto& counts = current_.latencies[completion.is_write];
  const auto latency = static_cast<std::size_t>(completion.finished - completion.accepted);
  if (counts.size() <= latency) counts.resize(latency + 1);
  ++counts[latency];
}

void DramHbm::collect() {
  if (log_.size() >= kToldTogether) [[unlikely]]
    tell_commands();
  controller_.take_completions(
      [&](const dram::Completion& completion) { note_completion(completion); });
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
  if (failure_ || done()) return;
  while (current_.told.until == 0 || !tells(limit)) {
    if (current_.asked == Asked::All) break;
    const bool first = current_.asked == Asked::Nothing;
    current_.asked = first ? Asked::Expected : Asked::All;
    current_.told = first ? expected_passage() : known_passage();
    if (done()) return;
  }
  if (current_.told.until != 0 && tells(limit)) return;
  control();
  current_.simulated = true;
  if (done()) return;
  if (transfer != nullptr && listener_ == nullptr) {
    hand_over_all(*transfer, limit);
    collect();
    if (done()) return;
  }
  simulate(done, limit, beyond_event);
}

void DramHbm::hand_over_all(const Transfer& transfer, Tick limit) {
  while (transfer.progress.handed < transfer.bursts) {
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

DramHbm::Progress DramHbm::foretold(const Transfer& transfer) const {
  const RememberedStates::Progress& known = current_.told.transfers[transfer.place];
  return {.handed = known.handed,
          .unfinished = known.unfinished,
          .accepted = current_.begin + known.accepted,
          .finished = current_.begin + known.finished};
}

void DramHbm::write_ends(Transfer& transfer) {
  transfer.ends.resize(transfer.bursts, kUnknown);
  for (const auto& [passage, place, from] : transfer.told) {
    const RememberedStates::Progress& known = passage->transfers[place];
    const auto since_start = static_cast<std::int32_t>(from - transfer.start);
    for (std::uint32_t i = known.first_end; i < known.last_end; ++i)
      transfer.ends[passage->ends[i].burst] = since_start + passage->ends[i].end;
  }
  transfer.told.clear();
}

std::optional<Tick> DramHbm::rows_end(Transfer& transfer, std::uint32_t first, std::uint32_t last) {
  write_ends(transfer);
  const std::uint32_t begin = transfer.pattern->rows[first].begin;
  const std::uint32_t end = transfer.pattern->rows[last].end;
  std::int32_t latest = 0;
  std::uint32_t unknown = 0;
  for (std::uint32_t burst = begin; burst < end; ++burst) {
    const bool known = transfer.ends[burst] != kUnknown;
    unknown += known ? 0 : 1;
    if (known) latest = std::max(latest, transfer.ends[burst]);
  }
  if (unknown != 0 && current_.told.until != 0 && is_live(transfer)) {
    const auto since_start = static_cast<std::int32_t>(current_.begin - transfer.start);
    const RememberedStates::Progress& known = current_.told.transfers[transfer.place];
    for (std::uint32_t i = known.first_end; i < known.last_end; ++i) {
      const RememberedStates::KnownEnd& one = (*current_.told.passage)->ends[i];
      if (one.burst < begin || one.burst >= end) continue;
      latest = std::max(latest, since_start + one.end);
      --unknown;
    }
  }
  if (unknown != 0) return std::nullopt;
  return transfer.start + latest;
}

Cycle DramHbm::delivered(Ticket ticket, std::uint32_t first_row, std::uint32_t last_row) {
  Transfer& transfer = transfers_[ticket];
  if (first_row == 0 && last_row + 1 == transfer.pattern->rows.size()) return complete(ticket);
  std::optional<Tick> end;
  run(
      nullptr,
      [&] {
        end = rows_end(transfer, first_row, last_row);
        return end.has_value();
      },
      kNever, beyond_event(transfer));
  if (failure_) return 0;
  return clock_.cycle_at(static_cast<std::uint64_t>(*end)) + transfer.after;
}

Cycle DramHbm::accepted(Ticket ticket) {
  const Transfer& transfer = transfers_[ticket];
  run(&transfer, [&] { return progress(transfer).handed == transfer.bursts; });
  return failure_ ? 0 : clock_.cycle_at(static_cast<std::uint64_t>(progress(transfer).accepted));
}

Cycle DramHbm::complete(Ticket ticket) {
  const Transfer& transfer = transfers_[ticket];
  run(
      &transfer, [&] { return progress(transfer).unfinished == 0; }, kNever,
      beyond_event(transfer));
  return failure_ ? 0 : complete_cycle(transfer);
}

// The last tick that a transfer which issues at `horizon` or later cannot change any more.
Tick DramHbm::last_before_issue_after(Cycle horizon) const {
  return static_cast<Tick>(clock_.tick_at(horizon + 1)) - 1;
}

bool DramHbm::accepted_by(Ticket ticket, Cycle horizon) {
  const Transfer& transfer = transfers_[ticket];
  const auto done = [&] { return progress(transfer).handed == transfer.bursts; };
  run(&transfer, done, last_before_issue_after(horizon));
  return failure_ ||
         (done() &&
          clock_.cycle_at(static_cast<std::uint64_t>(progress(transfer).accepted)) <= horizon);
}

bool DramHbm::complete_by(Ticket ticket, Cycle horizon) {
  const Transfer& transfer = transfers_[ticket];
  const auto done = [&] { return progress(transfer).unfinished == 0; };
  run(&transfer, done, last_before_issue_after(horizon));
  return failure_ || (done() && complete_cycle(transfer) <= horizon);
}

std::optional<dram::ChannelStatistics> DramHbm::controller_statistics() const {
  dram::ChannelStatistics all = controller_.statistics();
  states_.add_to(all);
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
      if (progress(transfers_[ticket]).unfinished == 0)
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
