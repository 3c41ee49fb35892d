#include "plena/cases/emulator_dump.h"

#include <cstring>

#include "plena/numerics/float_format.h"
#include "plena/numerics/vector_kernels.h"

namespace plena {

namespace {

void strip_zeros(Bytes& bytes) {
  while (!bytes.empty() && bytes.back() == 0) bytes.pop_back();
}

// Matrix SRAM holds f32 under rs-mx; its dump is in its type.
EmulatorDump matrix_dump(const Machine& machine) {
  const ElementType type = machine.settings.matrix_sram_type.element;
  const ElementType kept = machine.matrix_element();
  const std::size_t unit = storage_bytes(type);
  EmulatorDump dump{{}, machine.mram_elements() * unit};
  const std::uint64_t used = machine.mram.used_bytes() / storage_bytes(kept) +
                             (machine.mram.used_bytes() % storage_bytes(kept) != 0 ? 1 : 0);
  dump.bytes.resize(used * unit);
  if (used == 0) return dump;
  if (kept == type) {
    std::memcpy(dump.bytes.data(), machine.mram.data(), dump.bytes.size());
  } else {
    vector_kernels(type).from_f32(reinterpret_cast<const float*>(machine.mram.data()),
                                  dump.bytes.data(), used);
  }
  strip_zeros(dump.bytes);
  return dump;
}

EmulatorDump sparse_dump(const SparseMemory& memory) {
  const std::uint64_t used = memory.used_bytes();
  return {Bytes(memory.data(), memory.data() + used), memory.size()};
}

EmulatorDump entry_dump(const Machine& machine, MemoryKind memory) {
  const std::uint64_t count = machine.element_count(memory);
  EmulatorDump dump{std::move(*machine.read_elements(memory, 0, count)), 0};
  dump.full_bytes = dump.bytes.size();
  strip_zeros(dump.bytes);
  return dump;
}

}  // namespace

EmulatorDump emulator_dump(const Machine& machine, MemoryKind memory) {
  switch (memory) {
    case MemoryKind::Vram:
      return sparse_dump(machine.vram);
    case MemoryKind::Mram:
      return matrix_dump(machine);
    case MemoryKind::Hbm:
      return sparse_dump(machine.hbm);
    default:
      return entry_dump(machine, memory);
  }
}

Status write_emulator_dump(const Machine& machine, MemoryKind memory, const std::string& path) {
  const EmulatorDump dump = emulator_dump(machine, memory);
  auto file = FileWriter::create(path);
  if (!file) return tl::unexpected(file.error());
  if (auto written = file->append(dump.bytes); !written) return written;
  if (auto padded = file->append_zeros(dump.full_bytes - dump.bytes.size()); !padded) return padded;
  return file->commit();
}

}  // namespace plena
