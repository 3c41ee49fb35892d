// plena fmt FILE.asm… [--check]: canonical layout, in place.
#include <filesystem>
#include <memory>

#include <nlohmann/json.hpp>

#include "plena/asm/formatter.h"
#include "plena/base/file_reader.h"
#include "plena/base/files.h"
#include "plena/cli/commands.h"
#include "plena/cli/interrupt.h"

namespace plena {

namespace {

struct FmtOptions {
  std::vector<std::string> files;
  bool check = false;
};

// Streams a file through the formatter into `take`; whether its layout changed.
template <class Take>
Result<bool> format_file(const std::string& path, Take take) {
  auto reader = FileReader::open(path);
  if (!reader) return forward_error(reader);
  Formatter formatter(path);
  std::string out;
  for (;;) {
    const auto piece = reader->next();
    if (!piece) return tl::unexpected(piece.error());
    if (interrupted()) return fail(ErrorCode::Interrupted, "interrupted");
    if (piece->empty() || !formatter.wants_more()) break;
    formatter.feed(*piece, out);
    if (auto taken = take(out); !taken) return tl::unexpected(taken.error());
    out.clear();
  }
  if (auto finished = formatter.finish(out); !finished) return tl::unexpected(finished.error());
  if (auto taken = take(out); !taken) return tl::unexpected(taken.error());
  return formatter.changed();
}

// A link stays one: what it points at is rewritten.
Result<std::string> real_path(const std::string& path) {
  std::error_code error;
  auto real = std::filesystem::canonical(path, error);
  if (error) return fail(ErrorCode::Io, "cannot open {}: {}", path, error.message());
  if (!std::filesystem::is_regular_file(real, error)) {
    return fail(ErrorCode::Io, "cannot rewrite {}: not a regular file", path);
  }
  return real.string();
}

Result<bool> rewrite(const std::string& path) {
  const auto real = real_path(path);
  if (!real) return tl::unexpected(real.error());
  auto writer = FileWriter::create(*real);
  if (!writer) return forward_error(writer);
  auto changed = format_file(path, [&](std::string_view text) {
    return writer->append({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  });
  if (!changed || !*changed) return changed;
  if (auto committed = writer->commit(); !committed) return tl::unexpected(committed.error());
  return true;
}

Result<bool> check_layout(const std::string& path) {
  return format_file(path, [](std::string_view) { return Status(); });
}

Result<int> format_command(const FmtOptions& options, const Context& context) {
  std::vector<std::string> changed_files;
  for (const auto& path : options.files) {
    const auto changed = options.check ? check_layout(path) : rewrite(path);
    if (!changed) return tl::unexpected(changed.error());
    if (!*changed) continue;
    changed_files.push_back(path);
    if (!context.json && options.check) print("{}: not in canonical layout\n", path);
    if (!context.json && !options.check && context.verbose) print("{}: rewritten\n", path);
  }
  if (context.json) print("{}\n", nlohmann::json({{"changed", changed_files}}).dump(2));
  return options.check && !changed_files.empty() ? 1 : 0;
}

}  // namespace

void add_fmt_command(CLI::App& app, Context& context) {
  auto options = std::make_shared<FmtOptions>();
  CLI::App* command =
      app.add_subcommand("fmt", "Give assembly text its canonical layout, in place");
  command->add_option("FILE.asm", options->files, "Assembly text; may repeat")->required();
  command->add_flag("--check", options->check,
                    "Change nothing; exit status 1 when a file is not in canonical layout");
  command->callback([&context, options] {
    context.body = [&context, options] { return format_command(*options, context); };
  });
}

}  // namespace plena
