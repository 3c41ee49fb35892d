// Ctrl-C as a flag: long work polls it, cleans up after itself and ends with exit status 130.
#pragma once

#include <atomic>

namespace plena {

/// Set once the user pressed Ctrl-C, or whoever reads standard output went away. Pass it to what
/// runs long (RunOptions::interrupted) and stop soon after it is true.
const std::atomic<bool>& interrupted();

/// As if Ctrl-C had been pressed.
void request_stop();

/// From now on the first Ctrl-C sets the flag; a second one ends the program at once. A closed
/// output pipe is an error of the write and no longer kills the program.
void catch_signals();

}  // namespace plena
