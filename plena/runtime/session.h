// An image on a machine: tokens go in, logits come out, one run of the program a token.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "plena/base/error.h"
#include "plena/compiler/image.h"
#include "plena/machine/machine.h"
#include "plena/sim/engine.h"
#include "plena/sim/tile_cache.h"
#include "plena/timing/timing.h"

namespace plena {

/// What the clock says at the end of a step, from the first step on.
struct StepEnd {
  Cycle cycles = 0;
  std::uint64_t hbm_bytes = 0;  // whole bursts
};

class Session {
 public:
  /// Makes the image's machine, preloads it and prepares its program. `run_options` hold for every
  /// step. The image is not needed any more afterwards. Of the tiles the program fetches up to
  /// `tile_cache_bytes` stay decoded between steps, unless `run_options` brings a cache; the
  /// results are the same with any number, 0 included.
  static Result<Session> create(const Image& image, const RunOptions& run_options = {},
                                std::size_t tile_cache_bytes = TileCache::kDefaultBytes);

  /// Runs the program for `token` at `position`; the positions before it were run already. Returns
  /// the logits [vocab], valid until the next step. A trap of the machine is an error that says
  /// all about it; an interrupted run is ErrorCode::Interrupted.
  ///
  /// As on a real machine only pc restarts: registers, array and memories stay as the last run
  /// left them.
  Result<std::span<const float>> step(std::uint32_t token, std::uint32_t position);

  /// Tokens that run_block() takes at `position`, at most; 0: it takes none there.
  [[nodiscard]] std::uint32_t block_tokens(std::uint32_t position) const;

  /// Runs the program's second entry for `tokens` at `position` and the following ones; as step(),
  /// but for all of them at once. Returns the logits [vocab] after the last one or, where the image
  /// has all of a block's, of all of them [tokens, vocab].
  Result<std::span<const float>> run_block(std::span<const std::uint32_t> tokens,
                                           std::uint32_t position);

  /// Sequences that step_batch() takes a token of each; 1 where the image decodes but one.
  [[nodiscard]] std::uint32_t sequences() const {
    return manifest_.batch ? manifest_.batch->sequences : 1;
  }
  /// From now on step() and run_block() go on with this sequence, one of sequences(); at first it
  /// is 0.
  void select_sequence(std::uint32_t sequence);
  /// Runs the program's entry for sequences: as step() for `tokens[i]` at `positions[i]` of every
  /// sequence i, all at once. Returns the logits [sequences, vocab].
  Result<std::span<const float>> step_batch(std::span<const std::uint32_t> tokens,
                                            std::span<const std::uint32_t> positions);

  /// From now on steps are timed by `clock`, which was made for instructions() on this machine and
  /// must outlive them; null: by nobody. Time goes on from step to step, the host takes none.
  void set_clock(Timing* clock) { clock_ = clock; }
  /// When each timed step ended: its last result and transfer complete.
  [[nodiscard]] const std::vector<StepEnd>& step_ends() const { return step_ends_; }

  /// The program as the machine decodes it.
  [[nodiscard]] const std::vector<Instruction>& instructions() const {
    return plena::instructions(*prepared_);
  }
  [[nodiscard]] const Program& program() const { return program_; }
  [[nodiscard]] const Manifest& manifest() const { return manifest_; }
  [[nodiscard]] const Machine& machine() const { return machine_; }

 private:
  Session() = default;
  void write_inputs(std::uint32_t token, std::uint32_t position, std::uint32_t last);
  // Where the logits of a run's tokens come: MLEN of each token in turn, the next MLEN of each
  // `stride` elements behind.
  struct LogitsPlace {
    std::uint64_t address = 0;
    std::uint64_t stride = 0;
    std::uint32_t tokens = 1;
  };
  [[nodiscard]] LogitsPlace one_token() const;
  void read_logits(const LogitsPlace& from, std::uint32_t first, std::uint32_t end);
  bool take_piece(const LogitsPlace& logits, std::uint32_t& logits_read);
  [[nodiscard]] bool ends_entry(std::uint64_t breakpoint) const;
  Status check(std::span<const std::uint32_t> tokens, std::uint32_t position) const;
  Status end_step();
  Status run_program(std::uint32_t entry, const LogitsPlace& logits);

  Manifest manifest_;
  Program program_;  // for what a trap says
  Machine machine_;
  std::shared_ptr<const PreparedProgram> prepared_;
  RunOptions run_options_;
  std::unique_ptr<TileCache> tile_cache_;
  std::vector<float> logits_;  // [tokens, vocab]
  Timing* clock_ = nullptr;
  std::vector<StepEnd> step_ends_;
};

}  // namespace plena
