// The reference controller the slow way: one tick after the other, every rule of constraints.tsv
// looked up for every request in every tick. What the event-driven channel is compared with.
// Written from the description of the public reference measurements; for tests only.
#pragma once

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "plena/dram/channel.h"
#include "plena/dram/testing/constraint_rules.h"

namespace plena::dram::testing {

class TickByTick {
 public:
  TickByTick(const ChannelSettings& settings, bool row_hit, std::vector<ConstraintRule> rules)
      : settings_(settings), row_hit_(row_hit), rules_(std::move(rules)) {
    const Organisation& organisation = settings.preset.organisation;
    banks_ = organisation.banks();
    open_.assign(banks_, kClosed);
    for (auto& by_scope : last_)
      for (auto& instances : by_scope)
        instances.assign(banks_, Last{kBefore, kBefore, kBefore, kBefore});
  }

  /// Hands a request over before the next tick.
  bool submit(const BurstPlace& place, bool is_write, std::uint64_t id) {
    const Waiting request{id, now_, place, is_write};
    for (const Waiting& write : queues_[1]) {
      if (write.place == place) {
        done_.push_back({id, now_, now_ + 1, is_write});
        return true;
      }
    }
    auto& queue = queues_[is_write];
    if (queue.size() >= (is_write ? settings_.write_queue : settings_.read_queue)) return false;
    queue.push_back(request);
    return true;
  }

  void tick() {
    ++now_;
    add_refreshes();
    if (rising()) column_slot();
    row_slot();
  }

  [[nodiscard]] const std::vector<Completion>& completions() const { return done_; }
  [[nodiscard]] const CommandLog& log() const { return log_; }

 private:
  struct Waiting {
    std::uint64_t id;
    Tick accepted;
    BurstPlace place;
    bool is_write;
  };
  struct Refresh {
    Command command;
    unsigned bank;
  };
  using Last = std::array<Tick, 4>;
  static constexpr std::int64_t kClosed = -1;
  static constexpr Tick kBefore = -1'000'000;

  [[nodiscard]] bool hbm3() const { return settings_.preset.standard == Standard::Hbm3; }
  [[nodiscard]] bool rising() const { return !hbm3() || now_ % 2 == 1; }
  [[nodiscard]] Tick ticks(int ck) const { return Tick{ck} * settings_.preset.ticks_per_ck; }
  [[nodiscard]] unsigned pseudo_channel(unsigned bank) const {
    return coordinates(settings_.preset.standard, bank).pseudo_channel;
  }
  // The bank with these coordinates.
  [[nodiscard]] unsigned bank_at(unsigned pseudo_channel, unsigned in_order) const {
    for (unsigned bank = 0; bank < banks_; ++bank) {
      const BankCoordinates at = coordinates(settings_.preset.standard, bank);
      if (at.pseudo_channel == pseudo_channel && 16 * at.stack + 4 * at.group + at.bank == in_order)
        return bank;
    }
    return 0;
  }

  [[nodiscard]] bool in_time(Command command, unsigned bank) const {
    for (const ConstraintRule& rule : rules_) {
      if (rule.next != command) continue;
      const unsigned instance = instance_of_next(rule.scope, settings_.preset.standard, bank);
      const Last& last = last_[static_cast<std::size_t>(rule.previous)]
                              [static_cast<std::size_t>(rule.scope)][instance];
      if (now_ < last[rule.nth_previous - 1] + rule.start_to_start) return false;
    }
    return true;
  }

  void send(Command command, unsigned bank, std::uint32_t row, std::uint8_t column) {
    log_.push_back({.tick = now_,
                    .command = command,
                    .bank = static_cast<std::uint8_t>(bank),
                    .column = column,
                    .row = row});
    for (std::size_t scope = 0; scope < kScopeNames.size(); ++scope) {
      const unsigned instance = instance_of_previous(static_cast<ConstraintScope>(scope),
                                                     settings_.preset.standard, bank);
      Last& last = last_[static_cast<std::size_t>(command)][scope][instance];
      last = {now_, last[0], last[1], last[2]};
    }
    if (command == Command::Activate) open_[bank] = row;
    if (command == Command::Precharge) open_[bank] = kClosed;
    if (command == Command::PrechargeAll)
      for (unsigned other = 0; other < banks_; ++other)
        if (pseudo_channel(other) == pseudo_channel(bank)) open_[other] = kClosed;
  }

  [[nodiscard]] Command next_command(const Waiting& request) const {
    const std::int64_t open = open_[request.place.bank];
    if (open == kClosed) return Command::Activate;
    if (open != request.place.row) return Command::Precharge;
    return request.is_write ? Command::Write : Command::Read;
  }

  [[nodiscard]] bool activated(unsigned bank) const {
    return std::any_of(activated_.begin(), activated_.end(),
                       [&](const Waiting& request) { return request.place.bank == bank; });
  }

  void add_refreshes() {
    const Timings& timings = settings_.preset.timings;
    if (settings_.refresh == RefreshMode::AllBank && now_ % ticks(timings.nREFI) == 0) {
      for (unsigned half : {0U, 1U}) refreshes_.push_back({Command::RefreshAll, bank_at(half, 0)});
    }
    if (settings_.refresh != RefreshMode::PerBank) return;
    const Tick interval = ticks(timings.nREFIpb);
    const unsigned half = banks_ / 2;
    const auto number = static_cast<unsigned>(now_ / interval - 1);
    if (!hbm3()) {
      if (now_ % interval == 0)
        refreshes_.push_back(
            {Command::RefreshBank, bank_at(number % banks_ / half, number % half)});
      return;
    }
    if (now_ < interval || now_ % interval > 1) return;
    const unsigned second = now_ % interval == 1 ? 1 : 0;
    refreshes_.push_back({Command::RefreshBank, bank_at(second, number % half)});
  }

  void column_slot() {
    std::size_t best = activated_.size();
    for (std::size_t i = 0; i < activated_.size(); ++i) {
      if (!in_time(next_command(activated_[i]), activated_[i].place.bank)) continue;
      if (best == activated_.size() || activated_[i].accepted < activated_[best].accepted) best = i;
    }
    if (best != activated_.size()) {
      transfer(activated_[best]);
      activated_.erase(activated_.begin() + static_cast<std::ptrdiff_t>(best));
      return;
    }
    if (!refreshes_.empty()) return;
    update_mode();
    auto& queue = queues_[writing_];
    const auto hit = std::find_if(queue.begin(), queue.end(), [&](const Waiting& request) {
      const Command command = next_command(request);
      return is_column(command) && in_time(command, request.place.bank);
    });
    if (hit == queue.end()) return;
    transfer(*hit);
    queue.erase(hit);
  }

  void transfer(const Waiting& request) {
    const Timings& timings = settings_.preset.timings;
    const Command command = next_command(request);
    send(command, request.place.bank, request.place.row, request.place.column);
    const Tick finished = request.is_write ? now_ : now_ + ticks(timings.nCL) + ticks(timings.nBL);
    done_.push_back({request.id, request.accepted, finished, request.is_write});
  }

  void row_slot() {
    if (!refreshes_.empty()) return refresh();
    update_mode();
    auto& queue = queues_[writing_];
    const auto best = std::find_if(queue.begin(), queue.end(), [&](const Waiting& request) {
      const Command command = next_command(request);
      if (command == Command::Activate) return rising() && in_time(command, request.place.bank);
      return command == Command::Precharge && !activated(request.place.bank) &&
             !held_open(request) && in_time(command, request.place.bank);
    });
    if (best == queue.end()) return;
    const Command command = next_command(*best);
    if (command == Command::Precharge) return send(command, best->place.bank, 0, 0);
    send(command, best->place.bank, best->place.row, best->place.column);
    activated_.push_back(*best);
    queue.erase(best);
  }

  [[nodiscard]] bool held_open(const Waiting& request) const {
    if (!row_hit_) return false;
    const auto& queue = queues_[writing_];
    return std::any_of(queue.begin(), queue.end(), [&](const Waiting& other) {
      return other.accepted <= request.accepted && other.place.bank == request.place.bank &&
             other.place.row == open_[request.place.bank];
    });
  }

  void refresh() {
    const Refresh head = refreshes_.front();
    const bool all = head.command == Command::RefreshAll;
    bool open = false;
    bool blocked = false;
    for (unsigned bank = 0; bank < banks_; ++bank) {
      if (all ? pseudo_channel(bank) != pseudo_channel(head.bank) : bank != head.bank) continue;
      open = open || open_[bank] != kClosed;
      blocked = blocked || activated(bank);
    }
    if (open && blocked) return;
    const Command command = !open ? head.command : all ? Command::PrechargeAll : Command::Precharge;
    if ((!open && !rising()) || !in_time(command, head.bank)) return;
    send(command, head.bank, 0, 0);
    if (!open) refreshes_.pop_front();
  }

  void update_mode() {
    const auto reads = static_cast<double>(queues_[0].size());
    const auto writes = static_cast<double>(queues_[1].size());
    if (!writing_) {
      writing_ = writes > 0.8 * settings_.write_queue || reads == 0;
    } else {
      writing_ = !(writes < 0.2 * settings_.write_queue && reads > 0);
    }
  }

  ChannelSettings settings_;
  bool row_hit_;
  std::vector<ConstraintRule> rules_;
  unsigned banks_ = 0;
  Tick now_ = 0;
  std::array<std::vector<Waiting>, 2> queues_;  // by is_write, by age
  std::vector<Waiting> activated_;              // in order of activation
  std::deque<Refresh> refreshes_;
  bool writing_ = false;
  std::vector<std::int64_t> open_;
  std::array<std::array<std::vector<Last>, 6>, kCommandCount> last_;  // [command][scope][instance]
  std::vector<Completion> done_;
  CommandLog log_;
};

}  // namespace plena::dram::testing
