#include "plena/base/files.h"

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
  int release() { return std::exchange(fd_, -1); }

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
    bytes.reserve(static_cast<std::size_t>(status.st_size));
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
  }
}

Result<std::string> read_text(const std::string& path) {
  auto bytes = read_file(path);
  if (!bytes) return forward_error(bytes);
  return std::string(bytes->begin(), bytes->end());
}

Status write_file(const std::string& path, std::span<const std::uint8_t> bytes) {
  // Pipes and devices have no half-written state to guard against, and cannot be renamed over.
  struct stat status{};
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    const Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (file.get() < 0) return io_error(path, "open");
    return write_all(file.get(), bytes, path);
  }
  std::string temporary = path + ".XXXXXX";
  Descriptor file(::mkstemp(temporary.data()));
  if (file.get() < 0) return io_error(path, "create");
  ::fchmod(file.get(), 0644);
  if (auto written = write_all(file.get(), bytes, path); !written) {
    ::unlink(temporary.c_str());
    return written;
  }
  if (::close(file.release()) != 0 || ::rename(temporary.c_str(), path.c_str()) != 0) {
    auto error = io_error(path, "write");
    ::unlink(temporary.c_str());
    return error;
  }
  return {};
}

Status write_text(const std::string& path, std::string_view text) {
  return write_file(path, {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

Result<MappedFile> MappedFile::open(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return io_error(path, "open");
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return io_error(path, "inspect");
  if (!S_ISREG(status.st_mode))
    return fail(ErrorCode::Io, "cannot map {}: not a regular file", path);
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return MappedFile(nullptr, 0);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) return io_error(path, "map");
  return MappedFile(static_cast<const std::uint8_t*>(data), size);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::uint8_t*>(data_), size_);
}

}  // namespace plena
