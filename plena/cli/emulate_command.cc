// plena emulate, and the program plena-emulator: the options, dumps and closing lines of the public
// Rust emulator (cli.md), so that either can stand in where that program is called.
#include <array>
#include <cstdlib>
#include <memory>
#include <optional>

#include <nlohmann/json.hpp>

#include "plena/base/files.h"
#include "plena/cases/emulator_dump.h"
#include "plena/cases/emulator_run.h"
#include "plena/cases/stage_profile.h"
#include "plena/cli/commands.h"
#include "plena/cli/dialect_report.h"
#include "plena/cli/interrupt.h"
#include "plena/cli/text_output.h"
#include "plena/observe/observers.h"
#include "plena/timing/emulator_memory_time.h"

namespace plena {

namespace {

struct EmulateOptions {
  std::string opcode, hbm, fpsram, intsram, vram;
  std::string hbm_size;
  std::string settings;
  std::string log_level = "info";
  std::string log_file;
  std::string stage_profile_asm;
  std::string stage_profile_out = "stage_profile.json";
  bool warn_dialect = false;
  bool free_hbm = false;
};

// --settings, then the environment, then the file beside the parent folder (cli.md).
std::string settings_path(const EmulateOptions& options) {
  if (!options.settings.empty()) return options.settings;
  if (const char* named = std::getenv("PLENA_SETTINGS_TOML"); named != nullptr && *named != '\0')
    return named;
  return "../plena_settings.toml";
}

// The emulator's sizes: 256M, 1G and 512kib besides what the settings take.
std::string iec_size(std::string size) {
  constexpr std::string_view kUnits = "KMGT";
  const std::size_t at = size.find_first_not_of("0123456789");
  if (at == std::string::npos || at == 0) return size;
  std::string unit = size.substr(at);
  for (char& c : unit) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  const bool known = kUnits.find(unit.front()) != std::string_view::npos &&
                     (unit.size() == 1 || unit.substr(1) == "B" || unit.substr(1) == "IB");
  return known ? size.substr(0, at) + unit.front() + "iB" : size;
}

Result<Settings> emulator_machine(const EmulateOptions& options, const Context& context) {
  // Only the TRANSACTIONAL section counts, whatever [MODE] says (dialect-plena-rs.md 7).
  auto loaded = load_settings(settings_path(options), "transactional");
  if (!loaded) return forward_error(loaded);
  for (const std::string& warning : loaded->warnings) warn(context, warning);
  if (!options.hbm_size.empty()) {
    auto set = set_value(loaded->settings, "HBM_SIZE=" + iec_size(options.hbm_size));
    if (!set) return tl::unexpected(set.error());
  }
  return loaded->settings;
}

struct Images {
  std::optional<MappedFile> program, hbm, fpsram, intsram, vram;

  static std::span<const std::uint8_t> bytes(const std::optional<MappedFile>& file) {
    return file ? file->bytes() : std::span<const std::uint8_t>{};
  }
};

Status map_image(const std::string& path, std::optional<MappedFile>& out) {
  if (path.empty()) return {};
  auto file = MappedFile::open(path);
  if (!file) return tl::unexpected(file.error());
  out.emplace(std::move(*file));
  return {};
}

Result<Images> map_images(const EmulateOptions& options) {
  Images images;
  const std::array files = {
      std::pair(&options.opcode, &images.program), std::pair(&options.hbm, &images.hbm),
      std::pair(&options.fpsram, &images.fpsram), std::pair(&options.intsram, &images.intsram),
      std::pair(&options.vram, &images.vram)};
  for (const auto& [path, image] : files) {
    if (auto mapped = map_image(*path, *image); !mapped) return tl::unexpected(mapped.error());
  }
  return images;
}

Status write_dumps(const Machine& machine, bool with_hbm) {
  constexpr std::array kDumps = {std::pair(MemoryKind::Mram, "mram_dump.bin"),
                                 std::pair(MemoryKind::Vram, "vram_dump.bin"),
                                 std::pair(MemoryKind::FpMem, "fpsram_dump.bin"),
                                 std::pair(MemoryKind::IntMem, "intsram_dump.bin"),
                                 std::pair(MemoryKind::Hbm, "hbm_dump.bin")};
  for (const auto& [memory, path] : kDumps) {
    if (memory == MemoryKind::Hbm && !with_hbm) continue;
    if (auto written = write_emulator_dump(machine, memory, path); !written) return written;
  }
  return {};
}

std::string closing_lines(const EmulatorRun& run) {
  return fmt::format(
      "Simulation completed. Latency {} ns\n"
      "HBM Statistics - Bytes read: {} | Bytes written: {}\n",
      run.latency, run.hbm_read, run.hbm_written);
}

Status write_text(const std::string& path, std::string_view text, const EmulateOptions& options) {
  auto output = TextOutput::open(path, options.opcode);
  if (!output) return tl::unexpected(output.error());
  auto written = output->append(text);
  return written ? output->commit() : written;
}

Status report_result(const EmulatorRun& run, const EmulateOptions& options,
                     const Context& context) {
  if (context.json) {
    const nlohmann::ordered_json report = {{"latency_ns", run.latency},
                                           {"latency_without_memory", options.free_hbm},
                                           {"hbm_bytes_read", run.hbm_read},
                                           {"hbm_bytes_written", run.hbm_written},
                                           {"instructions", run.machine.retired}};
    print("{}\n", report.dump(2));
  } else {
    print(closing_lines(run));
  }
  if (options.log_file.empty()) return {};
  return write_text(options.log_file, closing_lines(run), options);
}

// Of a memory of its own with every call.
MemoryTime memory_time(const EmulateOptions& options) {
  return options.free_hbm ? MemoryTime() : emulator_memory_time();
}

// What watches the run besides the counts, as the options ask.
class Watchers {
 public:
  static Result<Watchers> create(const EmulateOptions& options, const Settings& settings,
                                 const Program& program, const Context& context) {
    Watchers watchers;
    if (!options.stage_profile_asm.empty()) {
      auto text = read_text(options.stage_profile_asm);
      if (!text) return forward_error(text);
      watchers.profile_.emplace(stage_labels(*text), settings, memory_time(options));
      const std::size_t labels = watchers.profile_->label_count();
      if (labels != program.words.size()) {
        warn(context,
             fmt::format("{}: warning: {} instructions, but {} has {}", options.stage_profile_asm,
                         labels, program.source_name, program.words.size()));
      }
    }
    if (options.warn_dialect) watchers.warnings_.emplace(program.words);
    return watchers;
  }

  Observer* observer() {
    if (profile_) observers_.add(*profile_);
    if (warnings_) observers_.add(*warnings_);
    return observers_.observer();
  }

  Status report(const EmulateOptions& options, const Program& program,
                const Context& context) const {
    if (warnings_) report_warnings(*warnings_, program, context);
    return profile_ ? write_text(options.stage_profile_out, profile_->json(), options) : Status();
  }

 private:
  std::optional<StageProfile> profile_;
  std::optional<DialectWarnings> warnings_;
  Observers observers_;
};

Result<int> emulate(const EmulateOptions& options, const Context& context) {
  auto settings = emulator_machine(options, context);
  if (!settings) return forward_error(settings);
  auto images = map_images(options);
  if (!images) return forward_error(images);
  auto program = emulator_program(images->program ? images->program->text() : std::string_view{},
                                  options.opcode);
  if (!program) return forward_error(program);
  auto watchers = Watchers::create(options, *settings, program->program, context);
  if (!watchers) return forward_error(watchers);
  auto run = run_emulator({.settings = *settings,
                           .program = &*program,
                           .hbm = Images::bytes(images->hbm),
                           .fp_sram = Images::bytes(images->fpsram),
                           .int_sram = Images::bytes(images->intsram),
                           .vram = Images::bytes(images->vram)},
                          {.observer = watchers->observer(),
                           .memory_time = memory_time(options),
                           .interrupted = &interrupted()});
  if (!run) return forward_error(run);
  if (run->interrupted) return fail(ErrorCode::Interrupted, "interrupted");
  if (auto reported = watchers->report(options, program->program, context); !reported)
    return tl::unexpected(reported.error());
  if (run->trap)
    return tl::unexpected(to_error(*run->trap, program->program, run->machine.dialect));
  if (auto written = write_dumps(run->machine, options.log_level == "debug"); !written)
    return tl::unexpected(written.error());
  if (auto reported = report_result(*run, options, context); !reported)
    return tl::unexpected(reported.error());
  if (options.free_hbm)
    warn(context, "note: the latency counts instructions only; HBM is taken to be free");
  return 0;
}

void add_options(CLI::App& command, EmulateOptions& options) {
  const auto file = [&](const char* name, std::string& path, const char* text) {
    return command.add_option(name, path, text)->type_name("FILE");
  };
  file("--opcode", options.opcode, "The program, a .mem file")->required();
  file("--hbm", options.hbm, "HBM image from byte 0")->required();
  file("--fpsram", options.fpsram, "FP_MEM image: binary16 values")->required();
  file("--intsram", options.intsram, "INT_MEM image: 32-bit integers");
  file("--vram", options.vram, "Vector SRAM image: elements of VECTOR_SRAM_TYPE from row 0");
  command
      .add_option("--hbm-size", options.hbm_size,
                  "Size of HBM in bytes (1048576, 16GiB); default: the settings'")
      ->type_name("SIZE");
  file("--settings", options.settings,
       "plena_settings.toml; default: $PLENA_SETTINGS_TOML, then ../plena_settings.toml");
  command
      .add_option("--log-level", options.log_level,
                  "off, error, warn, info, debug or trace; debug also dumps HBM")
      ->check(CLI::IsMember({"off", "error", "warn", "info", "debug", "trace"}))
      ->type_name("LEVEL");
  file("--log-file", options.log_file, "Write the closing lines there as well");
  file("--stage-profile-asm", options.stage_profile_asm,
       "The program's assembly, whose comments tell stages: write a profile of them");
  file("--stage-profile-out", options.stage_profile_out, "Where to; default: stage_profile.json");
  command.add_flag("--free-hbm", options.free_hbm,
                   "Take HBM to be free: the latency counts instructions only");
  command.add_flag("--warn-dialect", options.warn_dialect,
                   "Report where the program meets a fault of the public emulator");
}

}  // namespace

void add_emulate_command(CLI::App& app, Context& context) {
  auto options = std::make_shared<EmulateOptions>();
  CLI::App* command = app.add_subcommand(
      "emulate", "Stand in for the public Rust emulator: its options, its dumps, its bits");
  add_options(*command, *options);
  command->footer(
      "Leaves mram_dump.bin, vram_dump.bin, fpsram_dump.bin and intsram_dump.bin in the current "
      "folder.");
  command->callback([&context, options] {
    context.body = [&context, options] { return emulate(*options, context); };
  });
}

}  // namespace plena
