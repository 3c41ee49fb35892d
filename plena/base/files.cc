#include "plena/base/files.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace plena {

namespace {

tl::unexpected<Error> io_error(const std::string& path, std::string_view what) {
  return fail(ErrorCode::Io, "cannot {} {}: {}", what, path, std::strerror(errno));
}

// Closes the descriptor when the scope ends.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

Status write_all(int fd, std::span<const std::uint8_t> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_error(path, "write");
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

}  // namespace

Result<Bytes> read_file(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return io_error(path, "open");
  Bytes bytes;
  struct stat status{};
  if (::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode)) {
    bytes.reserve(
        std::min<std::uint64_t>(static_cast<std::uint64_t>(status.st_size), kMostBytesRead));
  }
  constexpr std::size_t kChunk = std::size_t{1} << 16;
  for (;;) {
    const std::size_t filled = bytes.size();
    bytes.resize(filled + kChunk);
    const ssize_t n = ::read(file.get(), bytes.data() + filled, kChunk);
    bytes.resize(filled + static_cast<std::size_t>(n > 0 ? n : 0));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_error(path, "read");
    if (n == 0) return bytes;
    if (bytes.size() > kMostBytesRead) {
      return fail(ErrorCode::Io, "cannot read {}: it has more than {} bytes", path, kMostBytesRead);
    }
  }
}

Result<std::string> read_text(const std::string& path) {
  auto bytes = read_file(path);
  if (!bytes) return forward_error(bytes);
  return std::string(bytes->begin(), bytes->end());
}

Result<FileWriter> FileWriter::create(const std::string& path) {
  // Pipes and devices have no half-written state to guard against, and cannot be renamed over.
  struct stat status{};
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) return io_error(path, "open");
    return FileWriter(path, {}, fd);
  }
  std::string temporary = path + ".XXXXXX";
  const int fd = ::mkstemp(temporary.data());
  if (fd < 0) return io_error(path, "create");
  ::fchmod(fd, 0644);
  return FileWriter(path, std::move(temporary), fd);
}

FileWriter::FileWriter(FileWriter&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      fd_(std::exchange(other.fd_, -1)),
      size_(other.size_) {}

FileWriter& FileWriter::operator=(FileWriter&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(temporary_, other.temporary_);
  std::swap(fd_, other.fd_);
  std::swap(size_, other.size_);
  return *this;
}

FileWriter::~FileWriter() {
  if (fd_ < 0) return;
  ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Status FileWriter::append(std::span<const std::uint8_t> bytes) {
  size_ += bytes.size();
  return write_all(fd_, bytes, path_);
}

Status FileWriter::append_zeros(std::uint64_t count) {
  if (!temporary_.empty()) {
    size_ += count;
    // Sets the length, so that a hole at the end counts, too.
    if (::ftruncate(fd_, static_cast<off_t>(size_)) != 0 ||
        ::lseek(fd_, static_cast<off_t>(size_), SEEK_SET) < 0) {
      return io_error(path_, "write");
    }
    return {};
  }
  const Bytes zeros(static_cast<std::size_t>(std::min<std::uint64_t>(count, 1U << 16)));
  for (std::uint64_t left = count; left != 0;) {
    const auto piece = std::min<std::uint64_t>(left, zeros.size());
    if (auto done = append({zeros.data(), static_cast<std::size_t>(piece)}); !done) return done;
    left -= piece;
  }
  return {};
}

Status FileWriter::commit() {
  if (::close(std::exchange(fd_, -1)) == 0 &&
      (temporary_.empty() || ::rename(temporary_.c_str(), path_.c_str()) == 0)) {
    return {};
  }
  auto error = io_error(path_, "write");
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  return error;
}

Status write_file(const std::string& path, std::span<const std::uint8_t> bytes) {
  auto writer = FileWriter::create(path);
  if (!writer) return forward_error(writer);
  if (auto written = writer->append(bytes); !written) return written;
  return writer->commit();
}

Status write_text(const std::string& path, std::string_view text) {
  return write_file(path, {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

Result<MappedFile> MappedFile::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return io_error(path, "open");
  return map(fd, path);
}

Result<MappedFile> MappedFile::map(int fd, const std::string& path) {
  MappedFile file(fd, nullptr, 0);
  struct stat status{};
  if (::fstat(fd, &status) != 0) return io_error(path, "inspect");
  if (!S_ISREG(status.st_mode))
    return fail(ErrorCode::Io, "cannot map {}: not a regular file", path);
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return file;
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED) return io_error(path, "map");
  file.data_ = static_cast<const std::uint8_t*>(data);
  file.size_ = size;
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::uint8_t*>(data_), size_);
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace plena
