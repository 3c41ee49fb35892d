// Where a command's text goes: a file that appears only when it is complete, or stdout.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "plena/base/error.h"
#include "plena/base/files.h"

namespace plena {

class TextOutput {
 public:
  /// An empty path or `-` is stdout. `source` must not be the same file: it would be overwritten.
  static Result<TextOutput> open(const std::string& path, const std::string& source);

  /// ErrorCode::Interrupted once Ctrl-C was pressed.
  Status append(std::string_view text);
  Status commit();

 private:
  explicit TextOutput(std::optional<FileWriter> file) : file_(std::move(file)) {}
  std::optional<FileWriter> file_;
};

}  // namespace plena
