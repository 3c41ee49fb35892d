#include "plena/cli/text_output.h"

#include <filesystem>

#include "plena/cli/context.h"
#include "plena/cli/interrupt.h"

namespace plena {

Result<TextOutput> TextOutput::open(const std::string& path, const std::string& source) {
  if (path.empty() || path == "-") return TextOutput(std::nullopt);
  std::error_code ignored;  // a file that is not there yet is no other file
  if (std::filesystem::equivalent(path, source, ignored)) {
    return fail_with_hint(ErrorCode::Usage,
                          fmt::format("{} would overwrite what it is made from", path),
                          "name another file with -o");
  }
  auto file = FileWriter::create(path);
  if (!file) return forward_error(file);
  return TextOutput(std::move(*file));
}

Status TextOutput::append(std::string_view text) {
  if (interrupted()) return fail(ErrorCode::Interrupted, "interrupted");
  if (file_) {
    return file_->append({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  }
  print(text);
  return {};
}

Status TextOutput::commit() {
  return file_ ? file_->commit() : Status();
}

}  // namespace plena
