#include "plena/machine/sparse_memory.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

#include "plena/machine/write_stamps.h"

namespace plena {

SparseMemory::SparseMemory() = default;

Result<SparseMemory> SparseMemory::reserve(std::uint64_t bytes, std::size_t chunk_bytes) {
  SparseMemory memory;
  memory.chunk_shift_ = static_cast<unsigned>(std::countr_zero(chunk_bytes));
  if (bytes == 0) return memory;
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) {
    return fail(ErrorCode::Settings, "cannot reserve {} bytes of address space for a memory: {}",
                bytes, std::strerror(errno));
  }
  memory.data_ = static_cast<std::uint8_t*>(data);
  memory.size_ = bytes;
  memory.touched_.assign(((bytes - 1) >> memory.chunk_shift_) + 1, 0);
  return memory;
}

SparseMemory::SparseMemory(SparseMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      chunk_shift_(other.chunk_shift_),
      touched_(std::move(other.touched_)),
      stamps_(std::move(other.stamps_)) {}

SparseMemory& SparseMemory::operator=(SparseMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(chunk_shift_, other.chunk_shift_);
  std::swap(touched_, other.touched_);
  std::swap(stamps_, other.stamps_);
  return *this;
}

SparseMemory::~SparseMemory() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

Result<SparseMemory> SparseMemory::clone() const {
  auto copy = reserve(size_, chunk_bytes());
  if (!copy) return copy;
  for (std::size_t chunk = 0; chunk < chunk_count(); ++chunk) {
    if (!touched(chunk)) continue;
    const std::uint64_t offset = static_cast<std::uint64_t>(chunk) << chunk_shift_;
    std::memcpy(copy->writable(offset, chunk_size(chunk)), data_ + offset, chunk_size(chunk));
  }
  return copy;
}

Status SparseMemory::map(std::uint64_t offset, const MappedFile& file, std::uint64_t from,
                         std::uint64_t count) {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  std::uint8_t* to = writable(offset, count);
  const std::uint8_t* bytes = file.bytes().data() + from;
  const std::uint64_t before = std::min(count, (page - offset % page) % page);
  const std::uint64_t whole = (count - before) / page * page;
  if (whole == 0 || offset % page != from % page) {
    if (count != 0) std::memcpy(to, bytes, count);
    return {};
  }
  if (::mmap(to + before, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE,
             file.descriptor(), static_cast<off_t>(from + before)) == MAP_FAILED) {
    return fail(ErrorCode::Io, "cannot map {} bytes of a file: {}", whole, std::strerror(errno));
  }
  std::memcpy(to, bytes, before);
  std::memcpy(to + before + whole, bytes + before + whole, count - before - whole);
  return {};
}

Status SparseMemory::stamp_writes() {
  if (stamps_ != nullptr) return {};
  auto stamps = WriteStamps::reserve(size_);
  if (!stamps) return tl::unexpected(std::move(stamps).error());
  stamps_ = std::move(*stamps);
  return {};
}

void SparseMemory::stamp(std::uint64_t offset, std::uint64_t count) {
  stamps_->mark(offset, count);
}

std::size_t SparseMemory::chunk_size(std::size_t chunk) const {
  const std::uint64_t offset = static_cast<std::uint64_t>(chunk) << chunk_shift_;
  return static_cast<std::size_t>(std::min<std::uint64_t>(chunk_bytes(), size_ - offset));
}

std::uint64_t SparseMemory::used_bytes() const {
  for (std::size_t chunk = chunk_count(); chunk-- > 0;) {
    if (!touched(chunk)) continue;
    const std::uint8_t* begin = data_ + (static_cast<std::uint64_t>(chunk) << chunk_shift_);
    const std::uint8_t* end = begin + chunk_size(chunk);
    while (end > begin && end[-1] == 0) --end;
    if (end > begin) return static_cast<std::uint64_t>(end - data_);
  }
  return 0;
}

bool operator==(const SparseMemory& a, const SparseMemory& b) {
  if (a.size_ != b.size_ || a.chunk_shift_ != b.chunk_shift_) return false;
  for (std::size_t chunk = 0; chunk < a.chunk_count(); ++chunk) {
    if (!a.touched(chunk) && !b.touched(chunk)) continue;
    const std::uint64_t offset = static_cast<std::uint64_t>(chunk) << a.chunk_shift_;
    if (std::memcmp(a.data_ + offset, b.data_ + offset, a.chunk_size(chunk)) != 0) return false;
  }
  return true;
}

}  // namespace plena
