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

namespace plena {

class Session {
 public:
  /// Makes the image's machine, preloads it and prepares its program. `run_options` hold for every
  /// step. The image is not needed any more afterwards.
  static Result<Session> create(const Image& image, const RunOptions& run_options = {});

  /// Runs the program for `token` at `position`; the positions before it were run already. Returns
  /// the logits [vocab], valid until the next step. A trap of the machine is an error that says
  /// all about it; an interrupted run is ErrorCode::Interrupted.
  ///
  /// As on a real machine only pc restarts: registers, array and memories stay as the last run
  /// left them.
  Result<std::span<const float>> step(std::uint32_t token, std::uint32_t position);

  [[nodiscard]] const Manifest& manifest() const { return manifest_; }
  [[nodiscard]] const Machine& machine() const { return machine_; }

 private:
  Session() = default;
  void write_inputs(std::uint32_t token, std::uint32_t position);
  void read_logits();

  Manifest manifest_;
  Program program_;  // for what a trap says
  Machine machine_;
  std::shared_ptr<const PreparedProgram> prepared_;
  RunOptions run_options_;
  std::vector<float> logits_;  // [vocab]
};

}  // namespace plena
