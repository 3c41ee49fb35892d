#include "plena/base/file_reader.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace plena {

namespace {

constexpr std::size_t kPiece = std::size_t{1} << 18;

}  // namespace

Result<FileReader> FileReader::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail(ErrorCode::Io, "cannot open {}: {}", path, std::strerror(errno));
  struct stat status{};
  const bool regular = ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
  return FileReader(path, fd, regular ? static_cast<std::uint64_t>(status.st_size) : 0);
}

FileReader::FileReader(std::string path, int fd, std::uint64_t size)
    : path_(std::move(path)), fd_(fd), size_(size), buffer_(kPiece) {}

FileReader::FileReader(FileReader&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      size_(other.size_),
      buffer_(std::move(other.buffer_)) {}

FileReader& FileReader::operator=(FileReader&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(size_, other.size_);
  std::swap(buffer_, other.buffer_);
  return *this;
}

FileReader::~FileReader() {
  if (fd_ >= 0) ::close(fd_);
}

Result<std::string_view> FileReader::next() {
  const ssize_t n = ::read(fd_, buffer_.data(), buffer_.size());
  if (n >= 0) return std::string_view(buffer_.data(), static_cast<std::size_t>(n));
  if (errno == EINTR) return fail(ErrorCode::Interrupted, "interrupted while reading {}", path_);
  return fail(ErrorCode::Io, "cannot read {}: {}", path_, std::strerror(errno));
}

}  // namespace plena
