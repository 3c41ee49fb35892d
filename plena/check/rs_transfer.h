// Where an H-type instruction of plena-rs reaches, and which of the emulator's address rules it
// meets there (dialect-plena-rs.md 6). Asked before a run by plena port, during one by
// --warn-dialect.
#pragma once

#include <cstdint>

#include "plena/config/settings.h"
#include "plena/isa/instruction.h"

namespace plena {

struct RsTransfer {
  DataType type;
  std::uint64_t rows = 0;
  std::uint64_t length = 0;  // elements a row
  bool store = false;

  std::uint64_t base = 0;    // byte address
  std::uint64_t offset = 0;  // bytes
  std::uint64_t stride = 0;  // bytes
  std::uint64_t scale = 0;   // SCALE_REG

  /// Type and size of the transfer; the addresses are still to be filled in.
  static RsTransfer of(const Instruction& instruction, const Settings& settings);

  [[nodiscard]] std::uint64_t row_start(std::uint64_t row) const { return offset + row * stride; }
  [[nodiscard]] std::uint64_t row_bytes() const { return (length * type.width() + 7) / 8; }

  /// A row reaches past the start of the next.
  [[nodiscard]] bool rows_overlap() const { return rows > 1 && stride < row_bytes(); }
  /// A row of an Mx type that is not whole blocks from the base address on.
  [[nodiscard]] bool leaves_blocks(std::uint64_t row) const;
  /// A row's scales do not lie in one 64-byte block; a load reads 0 for the rest.
  [[nodiscard]] bool cuts_scales(std::uint64_t row) const;
  /// Elements or scales of a row lie past `hbm_size`.
  [[nodiscard]] bool leaves_hbm(std::uint64_t row, std::uint64_t hbm_size) const;

 private:
  [[nodiscard]] std::uint64_t scale_address(std::uint64_t row) const;
};

}  // namespace plena
