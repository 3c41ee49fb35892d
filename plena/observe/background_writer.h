// A file that is written on a thread of its own, so that a run fills the next buffer while the
// system takes the last one.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "plena/base/files.h"

namespace plena {

class BackgroundWriter {
 public:
  explicit BackgroundWriter(FileWriter file);
  BackgroundWriter(const BackgroundWriter&) = delete;
  BackgroundWriter& operator=(const BackgroundWriter&) = delete;
  /// Without finish() nothing appears under the file's name.
  ~BackgroundWriter();

  /// Hands over the first `filled` bytes of a buffer and gives back another of its size, as soon as
  /// the bytes before are written. False: those or earlier ones could not be; finish() says why.
  bool append(std::vector<std::uint8_t>& buffer, std::size_t filled);

  /// Waits for everything; the file appears under its name. The error that came first, if any did.
  Status finish();

 private:
  void work();
  void stop();

  FileWriter file_;
  Status status_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::uint8_t> buffer_;  // the thread's while `full_`
  std::size_t filled_ = 0;
  bool full_ = false;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace plena
