// A case archive in a scratch folder. For tests only.
#pragma once

#include <cstdlib>
#include <string>

#include "plena/base/scratch_folder.h"

namespace plena {

class UnpackedArchive {
 public:
  /// `archive`: a .tar.zst file; needs tar and zstd.
  explicit UnpackedArchive(const std::string& archive) {
    const std::string command = "tar --zstd -xf '" + archive + "' -C '" + folder() + "'";
    ok_ = std::system(command.c_str()) == 0;
  }
  [[nodiscard]] std::string folder() const { return scratch_.path(); }
  [[nodiscard]] bool ok() const { return ok_; }

 private:
  ScratchFolder scratch_;
  bool ok_ = false;
};

}  // namespace plena
