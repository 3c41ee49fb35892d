// plena run PROGRAM: loads memories, runs, dumps and compares memories, reports.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "plena/asm/disassembler.h"
#include "plena/base/files.h"
#include "plena/cli/commands.h"
#include "plena/cli/dialect_report.h"
#include "plena/cli/engine_options.h"
#include "plena/cli/interrupt.h"
#include "plena/cli/number_checks.h"
#include "plena/cli/program_source.h"
#include "plena/cli/timeline_options.h"
#include "plena/cli/timing_options.h"
#include "plena/observe/memory_compare.h"
#include "plena/observe/memory_image.h"
#include "plena/observe/observers.h"
#include "plena/observe/run_log.h"
#include "plena/observe/statistics.h"
#include "plena/sim/engine.h"
#include "plena/timing/report_text.h"

namespace plena {

namespace {

constexpr const char* kStandardError = "-";  // what --log without a file means

struct RunArguments {
  std::string program;
  MachineOptions machine;
  TimingOptions timing;
  TimelineOptions timeline;
  std::vector<std::string> loads, dumps, expectations;
  Tolerance tolerance;
  bool statistics = false;
  EngineOptions engine;
  std::uint64_t max_instructions = 0;
  std::string log;  // file; empty: none
  bool warn_dialect = false;
};

struct MemoryRequests {
  std::vector<MemorySpec> loads, dumps, expectations;
};

// Everything there is to say about a run.
struct RunReport {
  Stop stop;
  std::uint64_t pc = 0;
  std::uint64_t retired = 0;
  std::string instruction;  // disassembly of what trapped
  std::uint32_t line = 0;   // its source line, 0 when unknown
  std::optional<Statistics> statistics;
  std::optional<TimingReport> timing;
  std::vector<Comparison> comparisons;  // one an --expect

  [[nodiscard]] bool failed() const {
    return stop.reason == StopReason::Trapped ||
           std::ranges::any_of(comparisons, [](const auto& c) { return c.mismatches != 0; });
  }
};

Status parse_all(const std::vector<std::string>& texts,
                 Result<MemorySpec> (*parse)(std::string_view), std::vector<MemorySpec>& specs) {
  for (const auto& text : texts) {
    auto spec = parse(text);
    if (!spec) return forward_error(spec);
    specs.push_back(std::move(*spec));
  }
  return {};
}

Result<MemoryRequests> parse_requests(const RunArguments& arguments) {
  MemoryRequests requests;
  if (auto s = parse_all(arguments.loads, parse_memory_source, requests.loads); !s)
    return forward_error(s);
  if (auto s = parse_all(arguments.dumps, parse_memory_spec, requests.dumps); !s)
    return forward_error(s);
  if (auto s = parse_all(arguments.expectations, parse_memory_source, requests.expectations); !s)
    return forward_error(s);
  return requests;
}

// A machine with its memories loaded, and every later request known to be possible, so that a long
// run does not end in a complaint that could have come first.
Result<Machine> load_machine(const ProgramSource& source, const MemoryRequests& requests) {
  auto machine = source.make_machine();
  if (!machine) return machine;
  for (const auto& load : requests.loads)
    if (auto loaded = load_memory(*machine, load); !loaded) return forward_error(loaded);
  for (const auto& dump : requests.dumps)
    if (auto fits = check_dump(*machine, dump); !fits) return forward_error(fits);
  for (const auto& expectation : requests.expectations) {
    if (auto comparable = check_comparable(*machine, expectation); !comparable)
      return forward_error(comparable);
  }
  return machine;
}

// The stream of --log, with a buffer of its own.
class LogStream {
 public:
  static Result<LogStream> open(const std::string& path) {
    std::FILE* file = path == kStandardError ? ::fdopen(::dup(STDERR_FILENO), "w")
                                             : std::fopen(path.c_str(), "we");
    if (file == nullptr)
      return fail(ErrorCode::Io, "cannot open {}: {}", path, std::strerror(errno));
    std::setvbuf(file, nullptr, _IOFBF, std::size_t{1} << 16);
    return LogStream(file);
  }
  [[nodiscard]] std::FILE* get() const { return file_.get(); }

 private:
  explicit LogStream(std::FILE* file) : file_(file, &std::fclose) {}
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

Result<Stop> execute(Machine& machine, const ProgramSource& source, const RunArguments& arguments,
                     const Context& context, RunReport& report) {
  const auto program = prepare(source.program.words, source.settings, source.dialect);
  if (!program) {
    machine.pc = program.error().pc;
    return Stop{StopReason::Trapped, program.error()};
  }
  auto clock = make_clock(with_clock_for(arguments.timeline, arguments.timing),
                          instructions(**program), source.settings, source.dialect);
  if (!clock) return forward_error(clock);
  std::unique_ptr<Timeline> timeline;
  if (*clock != nullptr) {
    auto attached = Timeline::attach(arguments.timeline, **clock, source.program, source.settings,
                                     source.dialect, arguments.program);
    if (!attached) return forward_error(attached);
    timeline = std::move(*attached);
  }
  Observers observers;
  if (*clock != nullptr) observers.add(**clock);
  if (arguments.statistics)
    observers.add(report.statistics.emplace(source.settings, source.dialect));
  std::optional<DialectWarnings> warnings;
  if (arguments.warn_dialect) observers.add(warnings.emplace(source.program.words));
  std::optional<LogStream> stream;
  std::optional<RunLog> log;
  if (!arguments.log.empty()) {
    auto opened = LogStream::open(arguments.log);
    if (!opened) return forward_error(opened);
    stream = std::move(*opened);
    observers.add(log.emplace(source.program, stream->get()));
  }
  TileCache tile_cache(arguments.engine.tile_cache_bytes());
  Workers workers(arguments.engine.threads);
  Stop stop = run(machine, **program,
                  {.max_instructions = arguments.max_instructions,
                   .observer = observers.observer(),
                   .interrupted = &interrupted(),
                   .fuse = arguments.engine.fuse,
                   .tile_cache = &tile_cache,
                   .workers = &workers});
  if (timeline) {
    if (auto finished = timeline->finish(); !finished) return forward_error(finished);
  }
  if (warnings) report_warnings(*warnings, source.program, context);
  if (log) {
    if (auto finished = log->finish(); !finished) return forward_error(finished);
  }
  if (*clock != nullptr && stop.reason != StopReason::Interrupted) {
    if (auto drained = (*clock)->drain(); !drained) return tl::unexpected(drained.error());
    if (timeline) {
      auto text = read_text(source.program.source_name);  // none of words in a .mem file
      auto written = timeline->write_report(std::move(text).value_or(std::string()));
      if (!written) return forward_error(written);
    }
    report.timing = make_report(**clock, source.settings, source.dialect, source.program.regions);
  }
  return stop;
}

nlohmann::ordered_json trap_json(const RunReport& run) {
  const Trap& trap = *run.stop.trap;
  nlohmann::ordered_json json = {{"cause", trap_name(trap.cause)},
                                 {"pc", trap.pc},
                                 {"instruction", run.instruction},
                                 {"values", trap.values},
                                 {"rule", trap.rule}};
  if (run.line != 0) json["line"] = run.line;
  return json;
}

nlohmann::ordered_json comparison_json(const Comparison& comparison, const std::string& request) {
  nlohmann::ordered_json json = {{"expect", request},
                                 {"elements", comparison.elements},
                                 {"mismatches", comparison.mismatches}};
  if (comparison.worst) {
    json["worst"] = {{"address", comparison.worst->address},
                     {"expected", comparison.worst->expected},
                     {"got", comparison.worst->got}};
  }
  return json;
}

void print_json(const RunReport& run, const RunArguments& arguments, const ProgramSource& source) {
  nlohmann::ordered_json json = {
      {"program", arguments.program},
      {"stopped", run.stop.reason == StopReason::Trapped ? "trapped" : "halted"},
      {"pc", run.pc},
      {"retired", run.retired}};
  if (run.stop.trap) json["trap"] = trap_json(run);
  if (run.statistics) json["statistics"] = to_json(*run.statistics);
  if (run.timing) json["timing"] = to_json(*run.timing, source.program, source.dialect);
  for (std::size_t i = 0; i < run.comparisons.size(); ++i)
    json["expectations"].push_back(comparison_json(run.comparisons[i], arguments.expectations[i]));
  print("{}\n", json.dump(2));
}

void print_text(const RunReport& run, const RunArguments& arguments, const Context& context,
                const Machine& machine, const MemoryRequests& requests,
                const ProgramSource& source) {
  for (std::size_t i = 0; i < run.comparisons.size(); ++i) {
    if (context.quiet && run.comparisons[i].mismatches == 0) continue;
    print("{}: {}\n", arguments.expectations[i],
          describe(run.comparisons[i], machine, requests.expectations[i].memory));
  }
  if (!context.quiet) {
    if (run.stop.reason == StopReason::Trapped) {
      print("trapped at pc {} after {} instructions\n", run.pc, run.retired);
    } else {
      print("halted after {} instructions\n", run.retired);
    }
  }
  if (run.timing && !run.statistics) print("{}\n", summary(*run.timing));
  if (run.statistics) print(to_text(*run.statistics));
  if (run.timing && run.statistics) print(to_text(*run.timing, source.program, source.dialect));
}

void report_trap(RunReport& run, const ProgramSource& source, const Context& context) {
  const Trap& trap = *run.stop.trap;
  if (trap.pc < source.program.lines.size()) run.line = source.program.lines[trap.pc];
  run.instruction = disassemble(source.program.words[trap.pc], source.dialect);
  Error error = to_error(trap, source.program, source.dialect);
  show_source_line(error);
  report(context, error);
}

Result<int> run_and_report(const RunArguments& arguments, const Context& context) {
  const auto requests = parse_requests(arguments);
  if (!requests) return tl::unexpected(requests.error());
  auto source = read_program_source(arguments.program, arguments.machine, context);
  if (!source) return tl::unexpected(source.error());
  auto machine = load_machine(*source, *requests);
  if (!machine) return forward_error(machine);
  source->image.reset();  // the machine has it now

  RunReport run;
  const auto start = std::chrono::steady_clock::now();
  auto stop = execute(*machine, *source, arguments, context, run);
  if (!stop) return forward_error(stop);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  run.stop = std::move(*stop);
  run.pc = machine->pc;
  run.retired = machine->retired;
  if (run.stop.reason == StopReason::Interrupted)
    return fail(ErrorCode::Interrupted, "interrupted after {} instructions", run.retired);
  if (run.stop.trap) report_trap(run, *source, context);
  if (context.verbose)
    warn(context, fmt::format("ran {} instructions in {:.6f} s", run.retired, seconds.count()));

  for (const auto& dump : requests->dumps)
    if (auto dumped = dump_memory(*machine, dump, &interrupted()); !dumped)
      return forward_error(dumped);
  for (const auto& expectation : requests->expectations) {
    auto comparison = compare_memory(*machine, expectation, arguments.tolerance);
    if (!comparison) return forward_error(comparison);
    run.comparisons.push_back(std::move(*comparison));
  }
  if (context.json) {
    print_json(run, arguments, *source);
  } else {
    print_text(run, arguments, context, *machine, *requests, *source);
  }
  return run.failed() ? 1 : 0;
}

void add_memory_options(CLI::App& command, RunArguments& arguments) {
  constexpr const char* kGroup =
      "Memories (SPEC is MEM=FILE[@ADDR], of a dump MEM=FILE[@ADDR[:COUNT]]; MEM: hbm, vram, mram, "
      "fp, int)";
  const auto add = [&](const char* name, std::vector<std::string>& texts, const char* description) {
    command.add_option(name, texts, description)
        ->type_name("SPEC")
        ->allow_extra_args(false)
        ->group(kGroup);
  };
  add("--load", arguments.loads, "Fill from a raw or .npy file; may repeat");
  add("--dump", arguments.dumps, "Write to a raw or .npy file, also after a trap; may repeat");
  add("--expect", arguments.expectations,
      "Compare with a raw or .npy file; exit status 1 on a difference; may repeat");
  for (const auto& [name, value, description] :
       {std::tuple("--atol", &arguments.tolerance.absolute, "Absolute tolerance of --expect"),
        std::tuple("--rtol", &arguments.tolerance.relative, "Relative tolerance of --expect")}) {
    command.add_option(name, *value, description)
        ->check(check_number_from_zero)
        ->type_name("X")
        ->group(kGroup);
  }
}

}  // namespace

void add_run_command(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<RunArguments>();
  CLI::App* command = app.add_subcommand("run", "Run a program on the simulated machine");
  command
      ->add_option("PROGRAM", arguments->program, "Assembly text, words (.mem) or an image folder")
      ->required();
  add_memory_options(*command, *arguments);
  command->add_flag("--stats", arguments->statistics,
                    "Count instructions, multiply-adds, HBM bytes and, with --timing, cycles by "
                    "cause");
  command->add_option("--max-instructions", arguments->max_instructions, "Stop with a trap after N")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 62))
      ->type_name("N");
  command->add_flag("--log{-}", arguments->log,
                    "One line an executed instruction, to stderr or to FILE (--log=FILE)");
  command->add_flag("--warn-dialect", arguments->warn_dialect,
                    "Report where a plena-rs program meets a fault of the public emulator");
  add_engine_options(*command, arguments->engine);
  add_timing_options(*command, arguments->timing);
  add_timeline_options(*command, arguments->timeline);
  add_machine_options(*command, arguments->machine);
  command->callback([&context, arguments] {
    context.body = [&context, arguments] { return run_and_report(*arguments, context); };
  });
}

}  // namespace plena
