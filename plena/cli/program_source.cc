#include "plena/cli/program_source.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "plena/asm/assembler.h"
#include "plena/asm/mem_file.h"
#include "plena/base/files.h"

namespace plena {

namespace {

Status read_assembly(const std::string& path, const Context& context, ProgramSource& source) {
  auto assembly = assemble_file(path, {.source_name = path,
                                       .dialect = source.dialect,
                                       .symbols = integer_symbols(source.settings)});
  if (!assembly) return forward_error(assembly);
  if (!assembly->ok()) {
    Error last = std::move(assembly->errors.back());
    assembly->errors.pop_back();
    for (const Error& error : assembly->errors) report(context, error);
    return tl::unexpected(std::move(last));
  }
  source.program = std::move(assembly->program);
  return {};
}

Status read_words(const std::string& path, ProgramSource& source) {
  auto words = read_mem_file(path);
  if (!words) return forward_error(words);
  source.program.words = std::move(*words);
  return {};
}

// The part of an image's program that decodes a token: what lies before the breakpoint ahead of the
// entry for blocks.
Program decoding_program(const Image& image) {
  Program program = image.program;
  if (!image.manifest.block) return program;
  const std::size_t end = image.manifest.block->entry - 1;
  program.words.resize(end);
  program.lines.resize(std::min(program.lines.size(), end));
  std::erase_if(program.regions, [&](const auto& region) { return region.end > end; });
  return program;
}

Result<ProgramSource> read_image(const std::string& folder, const MachineOptions& options) {
  if (!is_image_folder(folder)) {
    return fail_with_hint(ErrorCode::Usage, fmt::format("{} is a folder, but no image", folder),
                          "plena compile makes image folders");
  }
  if (options.named()) {
    return fail_with_hint(ErrorCode::Usage,
                          fmt::format("{} is an image, with settings of its own", folder),
                          "compile the model anew for another machine: plena compile");
  }
  auto image = load_image(folder);
  if (!image) return forward_error(image);
  ProgramSource source{decoding_program(*image), image->settings, image->dialect, std::nullopt};
  source.image = std::move(*image);
  return source;
}

// Line `number` (from 1) of a text, without its end.
std::string_view line_of(std::string_view text, std::uint32_t number) {
  std::size_t begin = 0;
  for (std::uint32_t line = 1; line < number; ++line) {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string_view::npos) return {};
    begin = end + 1;
  }
  std::string_view line = text.substr(begin, text.find('\n', begin) - begin);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace

Result<Machine> ProgramSource::make_machine() const {
  auto machine = Machine::create(settings, dialect);
  if (!machine || !image) return machine;
  if (auto loaded = preload(*image, *machine); !loaded) return forward_error(loaded);
  return machine;
}

Result<ProgramSource> read_program_source(const std::string& path, const MachineOptions& options,
                                          const Context& context) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return read_image(path, options);
  auto settings = resolve_settings(options, context);
  if (!settings) return forward_error(settings);
  auto dialect = Dialect::parse(options.isa);
  if (!dialect) return forward_error(dialect);
  ProgramSource source{{}, std::move(*settings), *dialect, std::nullopt};

  const Status read =
      path.ends_with(".mem") ? read_words(path, source) : read_assembly(path, context, source);
  if (!read) return tl::unexpected(read.error());
  return source;
}

void show_source_line(Error& error) {
  std::error_code ignored;
  if (error.place.line == 0 || !std::filesystem::is_regular_file(error.place.file, ignored)) return;
  const auto file = MappedFile::open(error.place.file);
  if (!file) return;
  const std::string_view line = line_of(file->text(), error.place.line);
  const std::size_t begin = line.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return;
  const std::string_view statement = line.substr(begin, line.find_first_of(";#", begin) - begin);
  error.place.source_line = line;
  error.place.column = static_cast<std::uint32_t>(begin + 1);
  error.place.length =
      static_cast<std::uint32_t>(std::max<std::size_t>(statement.find_last_not_of(" \t") + 1, 1));
}

}  // namespace plena
