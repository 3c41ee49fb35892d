#include "plena/compiler/hbm_packer.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <mutex>

#include "plena/base/contents.h"
#include "plena/base/parallel.h"

namespace plena {

namespace {

// Offsets of a tensor's elements and scales in the file.
struct FilePlace {
  std::uint64_t elements_at = 0;
  std::uint64_t element_bytes = 0;
  std::uint64_t scales_at = 0;
  std::uint64_t scale_bytes = 0;
};

// Of whole units.
std::uint64_t bytes_of(std::uint64_t elements, DataType type) {
  return elements * type.width() / 8;
}

std::uint64_t scales_of(std::uint64_t elements, DataType type) {
  return type.is_mx() ? elements / type.block : 0;
}

class Packer {
 public:
  Packer(const std::vector<TensorAtPlace>& tensors, const PackOptions& options)
      : tensors_(tensors), options_(options) {
    for (const TensorAtPlace& tensor : tensors) place(tensor);
  }

  Result<std::vector<HbmSegment>> pack(std::uint64_t most_in_memory) {
    auto file = size_ <= most_in_memory ? UnnamedFile::in_memory(size_)
                                        : UnnamedFile::create(folder(), size_);
    if (!file) return forward_error(file);
    auto packed = for_each_piece(pieces_.size(), [&](std::size_t i) {
      return pack_piece(*file, pieces_[i].tensor, pieces_[i].piece);
    });
    if (!packed) return tl::unexpected(packed.error());
    auto mapped = (*std::move(file)).map();
    if (!mapped) return forward_error(mapped);
    return segments(std::make_shared<const MappedFile>(*std::move(mapped)));
  }

 private:
  void place(const TensorAtPlace& tensor) {
    const TensorPieces& pieces = tensor.pieces;
    FilePlace place;
    const std::uint64_t unit = whole_unit(pieces.type);
    const std::uint64_t padded = (pieces.elements + unit - 1) / unit * unit;
    place.element_bytes = bytes_of(padded, pieces.type);
    place.scale_bytes = scales_of(padded, pieces.type);
    place.elements_at = take(tensor.elements_at, place.element_bytes);
    place.scales_at = take(tensor.scales_at, place.scale_bytes);
    for (std::size_t i = 0; i < pieces.pieces.size(); ++i) pieces_.push_back({places_.size(), i});
    places_.push_back(place);
    all_ += place.element_bytes + place.scale_bytes;
  }

  std::uint64_t take(std::uint64_t address, std::uint64_t bytes) {
    if (bytes == 0) return size_;
    const std::uint64_t offset = segment_offset(size_, address);
    size_ = offset + bytes;
    return offset;
  }

  [[nodiscard]] std::string folder() const {
    if (!options_.folder.empty()) return options_.folder;
    std::error_code ignored;
    return std::filesystem::temp_directory_path(ignored).string();
  }

  Status pack_piece(const UnnamedFile& file, std::size_t tensor, std::size_t index) {
    if (options_.interrupted != nullptr && *options_.interrupted) {
      return fail(ErrorCode::Interrupted, "interrupted");
    }
    const TensorPieces& pieces = tensors_[tensor].pieces;
    const TensorPiece& piece = pieces.pieces[index];
    Quantiser quantiser(pieces.type, pieces.scales);
    piece.append(quantiser);
    const QuantisedTensor packed = std::move(quantiser).finish();
    const FilePlace& place = places_[tensor];
    const std::uint64_t first_byte = bytes_of(piece.first, pieces.type);
    if (auto done = file.write_at(place.elements_at + first_byte, packed.elements); !done) {
      return done;
    }
    const std::uint64_t first_scale = scales_of(piece.first, pieces.type);
    if (auto done = file.write_at(place.scales_at + first_scale, packed.scales); !done) {
      return done;
    }
    report(packed.elements.size() + packed.scales.size());
    return {};
  }

  void report(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    done_ += bytes;
    if (options_.progress) options_.progress(done_, all_);
  }

  [[nodiscard]] std::vector<HbmSegment> segments(
      const std::shared_ptr<const MappedFile>& file) const {
    std::vector<HbmSegment> segments;
    const auto add = [&](std::string name, std::uint64_t address, std::uint64_t offset,
                         std::uint64_t bytes) {
      if (bytes == 0) return;
      segments.push_back({std::move(name), address, Contents(file, offset, bytes)});
    };
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const TensorAtPlace& tensor = tensors_[i];
      const FilePlace& place = places_[i];
      add(tensor.name, tensor.elements_at, place.elements_at, place.element_bytes);
      add(tensor.name + ", scales", tensor.scales_at, place.scales_at, place.scale_bytes);
    }
    return segments;
  }

  struct PieceIndex {
    std::size_t tensor = 0;
    std::size_t piece = 0;
  };

  const std::vector<TensorAtPlace>& tensors_;
  const PackOptions& options_;
  std::vector<FilePlace> places_;   // by tensor
  std::vector<PieceIndex> pieces_;  // of all tensors
  std::uint64_t size_ = 0;          // of the file
  std::uint64_t all_ = 0;           // bytes to pack
  std::mutex mutex_;
  std::uint64_t done_ = 0;  // bytes
};

}  // namespace

Result<std::vector<HbmSegment>> pack_hbm(const std::vector<TensorAtPlace>& tensors,
                                         const PackOptions& options, std::uint64_t most_in_memory) {
  return Packer(tensors, options).pack(most_in_memory);
}

}  // namespace plena
