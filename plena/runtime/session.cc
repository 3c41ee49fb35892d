#include "plena/runtime/session.h"

#include <algorithm>
#include <utility>

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
  if (!manifest_.causal) {
    return fail(ErrorCode::Usage, "the model reads whole texts, not one token after the other");
  }
  if (auto checked = check(std::span(&token, 1), position); !checked) {
    return tl::unexpected(checked.error());
  }
  write_inputs(token, position, position);
  if (auto ran = run_program(0, one_token()); !ran) return tl::unexpected(ran.error());
  return std::span<const float>(logits_);
}

std::uint32_t Session::block_tokens(std::uint32_t position) const {
  if (!manifest_.block || position >= manifest_.context) return 0;
  const std::uint32_t tokens = manifest_.block->tokens;
  if (position % tokens != 0 || (!manifest_.causal && position != 0)) return 0;
  return std::min(tokens, manifest_.context - position);
}

Result<std::span<const float>> Session::run_block(std::span<const std::uint32_t> tokens,
                                                  std::uint32_t position) {
  if (auto checked = check(tokens, position); !checked) return tl::unexpected(checked.error());
  const std::uint32_t most = block_tokens(position);
  if (tokens.empty() || tokens.size() > most) {
    return fail(ErrorCode::Usage, "{} tokens at position {}, where a block takes {}", tokens.size(),
                position, most);
  }
  // What a block holds beyond the tokens goes to positions that are written again before anything
  // sees them.
  const auto count = static_cast<std::uint32_t>(tokens.size());
  write_inputs(tokens[0], position, position + count - 1);
  for (std::uint32_t i = 0; i < manifest_.block->tokens; ++i) {
    machine_.int_mem[manifest_.token_address + i] = i < count ? tokens[i] : 0;
  }
  machine_.int_mem[manifest_.block->last_token_address] = count - 1;
  LogitsPlace logits = one_token();
  if (manifest_.block->has_all_logits()) {
    logits = {manifest_.block->logits_address, manifest_.block->logits_stride, count};
  }
  if (auto ran = run_program(manifest_.block->entry, logits); !ran) {
    return tl::unexpected(ran.error());
  }
  return std::span<const float>(logits_);
}

Session::LogitsPlace Session::one_token() const {
  return {manifest_.logits_address, machine_.settings.mlen, 1};
}

// Logits `first` to `end` of all tokens; `first` is a whole number of MLEN.
void Session::read_logits(const LogitsPlace& from, std::uint32_t first, std::uint32_t end) {
  const std::size_t mlen = machine_.settings.mlen;
  for (std::size_t token = 0; token < from.tokens; ++token) {
    const std::span<float> logits =
        std::span(logits_).subspan(token * manifest_.vocab, manifest_.vocab);
    for (std::size_t at = first; at < end; at += mlen) {
      read_vector(machine_, from.address + (at - first) / mlen * from.stride + token * mlen,
                  logits.subspan(at, std::min(mlen, end - at)));
    }
  }
}

void Session::select_sequence(std::uint32_t sequence) {
  if (!manifest_.batch) return;
  machine_.int_mem[manifest_.batch->sequence_address] =
      sequence * manifest_.batch->sequence_elements;
}

Result<std::span<const float>> Session::step_batch(std::span<const std::uint32_t> tokens,
                                                   std::span<const std::uint32_t> positions) {
  if (!manifest_.batch || tokens.size() != sequences() || positions.size() != sequences()) {
    return fail(ErrorCode::Usage, "{} tokens at {} positions, where the image decodes {} sequences",
                tokens.size(), positions.size(), sequences());
  }
  const BatchEntry& batch = *manifest_.batch;
  for (std::uint32_t i = 0; i < batch.sequences; ++i) {
    if (auto checked = check(tokens.subspan(i, 1), positions[i]); !checked) {
      return tl::unexpected(checked.error());
    }
    std::uint32_t* const inputs =
        machine_.int_mem.data() + batch.inputs_address + std::size_t{i} * (batch.inputs + 1);
    inputs[0] = tokens[i];
    for (const PositionInput& input : manifest_.position_inputs) {
      const std::uint32_t index = input.address - batch.first_input;
      if (index < batch.inputs) inputs[1 + index] = input.value(positions[i]);
    }
  }
  const LogitsPlace logits{batch.logits_address, batch.logits_stride, batch.sequences};
  if (auto ran = run_program(batch.entry, logits); !ran) return tl::unexpected(ran.error());
  return std::span<const float>(logits_);
}

Status Session::check(std::span<const std::uint32_t> tokens, std::uint32_t position) const {
  for (const std::uint32_t token : tokens) {
    if (token < manifest_.vocab) continue;
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
  return {};
}

bool Session::ends_entry(std::uint64_t breakpoint) const {
  return (manifest_.block && breakpoint + 1 == manifest_.block->entry) ||
         (manifest_.batch && breakpoint + 1 == manifest_.batch->entry);
}

Status Session::end_step() {
  if (clock_ == nullptr) return {};
  if (auto drained = clock_->drain(); !drained) return drained;
  step_ends_.push_back({clock_->model().total(), clock_->hbm().traffic().total() * kBurstBytes});
  return {};
}

// Whether a breakpoint stands behind a piece of the logits, which is read then.
bool Session::take_piece(const LogitsPlace& logits, std::uint32_t& logits_read) {
  if (!manifest_.logit_pieces) return false;
  const auto& [of_piece, so_far_address] = *manifest_.logit_pieces;
  const std::uint32_t so_far = machine_.int_mem[so_far_address];
  if (so_far > manifest_.vocab || so_far != logits_read + of_piece) return false;
  read_logits(logits, logits_read, so_far);
  logits_read = so_far;
  return true;
}

// An entry ends at the end of the program or at the breakpoint before the next one. It stops
// before at a breakpoint for each piece of the logits and, where the host picks experts, one a
// layer.
Status Session::run_program(std::uint32_t entry, const LogitsPlace& logits) {
  RunOptions options = run_options_;
  if (clock_ != nullptr) options.observer = clock_;
  machine_.pc = entry;
  logits_.resize(std::size_t{logits.tokens} * manifest_.vocab);
  std::uint32_t logits_read = 0;
  for (;;) {
    const Stop stop = run(machine_, *prepared_, options);
    if (stop.reason == StopReason::Interrupted) return fail(ErrorCode::Interrupted, "interrupted");
    const bool breaks = stop.trap && stop.trap->cause == TrapCause::Breakpoint;
    if (stop.reason == StopReason::Halted || (breaks && ends_entry(stop.trap->pc))) {
      if (manifest_.vocab - logits_read > manifest_.logits_at_once()) {
        return fail(ErrorCode::Format, "the program ended before all of its logits came");
      }
      read_logits(logits, logits_read, manifest_.vocab);
      return end_step();
    }
    const bool piece = breaks && take_piece(logits, logits_read);
    if (!piece && !(breaks && manifest_.host_routing)) {
      return tl::unexpected(to_error(*stop.trap, program_, machine_.dialect));
    }
    if (!piece) pick_experts(*manifest_.host_routing, machine_);
    resume_after_break(machine_, *prepared_);
  }
}

void Session::write_inputs(std::uint32_t token, std::uint32_t position, std::uint32_t last) {
  machine_.int_mem[manifest_.token_address] = token;
  for (const PositionInput& input : manifest_.position_inputs) {
    machine_.int_mem[input.address] = input.value(input.of_last ? last : position);
  }
}

}  // namespace plena
