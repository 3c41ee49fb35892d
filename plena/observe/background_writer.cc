#include "plena/observe/background_writer.h"

#include <utility>

namespace plena {

BackgroundWriter::BackgroundWriter(FileWriter file)
    : file_(std::move(file)), thread_([this] { work(); }) {}

BackgroundWriter::~BackgroundWriter() {
  stop();
}

void BackgroundWriter::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return full_ || stopping_; });
    if (!full_) return;
    if (status_) {
      lock.unlock();
      Status written = file_.append({buffer_.data(), filled_});
      lock.lock();
      status_ = std::move(written);
    }
    full_ = false;
    changed_.notify_all();
  }
}

bool BackgroundWriter::append(std::vector<std::uint8_t>& buffer, std::size_t filled) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !full_; });
  buffer_.resize(buffer.size());
  std::swap(buffer_, buffer);
  filled_ = filled;
  full_ = true;
  changed_.notify_all();
  return status_.has_value();
}

void BackgroundWriter::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Status BackgroundWriter::finish() {
  stop();
  if (!status_) return status_;
  return file_.commit();
}

}  // namespace plena
