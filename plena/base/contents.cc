#include "plena/base/contents.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace plena {

namespace {

tl::unexpected<Error> io_error(const std::string& place) {
  return fail(ErrorCode::Io, "cannot write to {}: {}", place, std::strerror(errno));
}

// Where a file system has no files without a name, one whose name is taken away at once.
int open_unnamed(const std::string& folder) {
  const int fd = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0644);
  if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return fd;
  std::string path = folder + "/plena.XXXXXX";
  const int named = ::mkostemp(path.data(), O_CLOEXEC);
  if (named >= 0) ::unlink(path.c_str());
  return named;
}

}  // namespace

Contents::Contents(Bytes bytes)
    : buffer_(std::make_shared<const Bytes>(std::move(bytes))), bytes_(*buffer_) {}

Contents::Contents(std::shared_ptr<const MappedFile> file, std::uint64_t offset,
                   std::uint64_t count)
    : file_(std::move(file)), file_offset_(offset), bytes_(file_->bytes().subspan(offset, count)) {}

bool operator==(const Contents& a, const Contents& b) {
  return std::ranges::equal(a.bytes_, b.bytes_);
}

Result<UnnamedFile> UnnamedFile::create(const std::string& folder, std::uint64_t bytes) {
  UnnamedFile file(open_unnamed(folder), folder);
  if (file.fd_ < 0) return io_error(folder);
  // Room is taken at once, so that a full disk shows before hours of work and not behind them.
  if (bytes != 0 && ::fallocate(file.fd_, 0, 0, static_cast<off_t>(bytes)) != 0 &&
      errno != EOPNOTSUPP) {
    return fail(ErrorCode::Io, "{} has no room for a file of {} bytes: {}", folder, bytes,
                std::strerror(errno));
  }
  if (auto resized = file.resize(bytes); !resized) return tl::unexpected(resized.error());
  return file;
}

Result<UnnamedFile> UnnamedFile::in_memory(std::uint64_t bytes) {
  UnnamedFile file(::memfd_create("plena", MFD_CLOEXEC), "memory");
  if (file.fd_ < 0) return io_error(file.place_);
  if (auto resized = file.resize(bytes); !resized) return tl::unexpected(resized.error());
  return file;
}

UnnamedFile::UnnamedFile(UnnamedFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), place_(std::move(other.place_)) {}

UnnamedFile& UnnamedFile::operator=(UnnamedFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(place_, other.place_);
  return *this;
}

UnnamedFile::~UnnamedFile() {
  if (fd_ >= 0) ::close(fd_);
}

Status UnnamedFile::resize(std::uint64_t bytes) const {
  if (::ftruncate(fd_, static_cast<off_t>(bytes)) != 0) return io_error(place_);
  return {};
}

Status UnnamedFile::write_at(std::uint64_t offset, std::span<const std::uint8_t> bytes) const {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_error(place_);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
  return {};
}

Result<MappedFile> UnnamedFile::map() && {
  return MappedFile::map(std::exchange(fd_, -1), place_);
}

bool give_name(const MappedFile& file, const std::string& path) {
  struct stat status{};
  if (::fstat(file.descriptor(), &status) != 0 || status.st_nlink != 0) return false;
  const std::string open_file = fmt::format("/proc/self/fd/{}", file.descriptor());
  return ::linkat(AT_FDCWD, open_file.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0;
}

}  // namespace plena
