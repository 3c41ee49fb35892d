// The program `plena-emulator`: `plena emulate` under a name of its own.
#include <vector>

#include "plena/cli/command_line.h"
#include "plena/cli/commands.h"

int main(int argc, char** argv) {
  CLI::App app("plena-emulator: stands in for the public Rust emulator", "plena-emulator");
  plena::Context context;
  plena::add_emulate_command(app, context);

  char command[] = "emulate";
  std::vector<char*> arguments = {argv[0], command};
  arguments.insert(arguments.end(), argv + 1, argv + argc);
  return plena::run_command_line(app, context, static_cast<int>(arguments.size()),
                                 arguments.data());
}
