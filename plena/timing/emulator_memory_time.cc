#include "plena/timing/emulator_memory_time.h"

#include <memory>

#include "plena/timing/emulator_hbm.h"

namespace plena {

std::function<std::uint64_t(const Machine&, const Instruction&, std::uint64_t)>
emulator_memory_time() {
  constexpr std::uint32_t kClockMhz = 1000;
  const auto hbm = std::make_shared<EmulatorHbm>(kClockMhz);
  return [hbm](const Machine& machine, const Instruction& instruction, std::uint64_t now) {
    const TransferStart start{unit_of(instruction.op), now, 0, 0};
    const Ticket ticket = hbm->start(start, transfer_rows(machine, instruction));
    const Cycle complete = hbm->complete(ticket);
    hbm->release(ticket);
    return complete;
  };
}

}  // namespace plena
