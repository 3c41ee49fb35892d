#include "plena/runtime/session.h"

#include <utility>

#include "plena/numerics/float_format.h"
#include "plena/runtime/expert_routing.h"

namespace plena {

Result<Session> Session::create(const Image& image, const RunOptions& run_options,
                                std::size_t tile_cache_bytes) {
  if (auto checked = check_image(image); !checked) return tl::unexpected(checked.error());
  auto machine = Machine::create(image.settings, image.dialect);
  if (!machine) return forward_error(machine);
  if (auto loaded = preload(image, *machine); !loaded) return tl::unexpected(loaded.error());
  auto prepared = prepare(image.program.words, image.settings, image.dialect);
  if (!prepared) {
    return tl::unexpected(to_error(prepared.error(), image.program, image.dialect));
  }

  Session session;
  session.manifest_ = image.manifest;
  session.program_ = image.program;
  session.machine_ = *std::move(machine);
  session.prepared_ = *std::move(prepared);
  session.run_options_ = run_options;
  if (run_options.tile_cache == nullptr) {
    session.tile_cache_ = std::make_unique<TileCache>(tile_cache_bytes);
    session.run_options_.tile_cache = session.tile_cache_.get();
  }
  session.logits_.resize(image.manifest.vocab);
  return session;
}

Result<std::span<const float>> Session::step(std::uint32_t token, std::uint32_t position) {
  if (token >= manifest_.vocab) {
    return fail_with_hint(ErrorCode::Usage, fmt::format("token {} is not in the vocabulary", token),
                          fmt::format("ids lie in 0 … {}", manifest_.vocab - 1));
  }
  if (position >= manifest_.context) {
    return fail_with_hint(ErrorCode::Usage,
                          fmt::format("position {} is beyond the model's context", position),
                          fmt::format("it has {} positions", manifest_.context));
  }
  // A program may be shorter than the engine's interval between two looks at the flag.
  const auto* interrupted = run_options_.interrupted;
  if (interrupted != nullptr && *interrupted) return fail(ErrorCode::Interrupted, "interrupted");
  write_inputs(token, position);
  if (auto ran = run_program(); !ran) return tl::unexpected(ran.error());
  if (auto ended = end_step(); !ended) return tl::unexpected(ended.error());
  read_logits();
  return std::span<const float>(logits_);
}

Status Session::end_step() {
  if (clock_ == nullptr) return {};
  if (auto drained = clock_->drain(); !drained) return drained;
  step_ends_.push_back({clock_->model().total(), clock_->hbm().traffic().total() * kBurstBytes});
  return {};
}

// Where the host picks experts the program stops for it, at a breakpoint a layer.
Status Session::run_program() {
  RunOptions options = run_options_;
  if (clock_ != nullptr) options.observer = clock_;
  machine_.pc = 0;
  for (;;) {
    const Stop stop = run(machine_, *prepared_, options);
    if (stop.reason == StopReason::Halted) return {};
    if (stop.reason == StopReason::Interrupted) return fail(ErrorCode::Interrupted, "interrupted");
    if (!manifest_.host_routing || stop.trap->cause != TrapCause::Breakpoint) {
      return tl::unexpected(to_error(*stop.trap, program_, machine_.dialect));
    }
    pick_experts(*manifest_.host_routing, machine_);
    resume_after_break(machine_, *prepared_);
  }
}

void Session::write_inputs(std::uint32_t token, std::uint32_t position) {
  machine_.int_mem[manifest_.token_address] = token;
  for (const PositionInput& input : manifest_.position_inputs) {
    machine_.int_mem[input.address] = input.value(position);
  }
}

void Session::read_logits() {
  read_vector(machine_, manifest_.logits_address, logits_);
}

}  // namespace plena
