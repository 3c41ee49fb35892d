// Reads the text of a timing profile. Every complaint names its place.
#include <algorithm>
#include <array>

#include <toml++/toml.h>

#include "plena/base/near_miss.h"
#include "plena/timing/profile.h"

namespace plena {

namespace {

constexpr std::uint16_t kNoClass = UINT16_MAX;
constexpr std::int64_t kFastestClock = 10'000;  // MHz
constexpr std::int64_t kDeepestQueue = 4096;
constexpr std::int64_t kMostChannels = 256;
constexpr std::int64_t kWidestInterleave = std::int64_t{1} << 30;

constexpr std::array<std::string_view, 9> kProfileKeys = {
    "description",         "base", "overlap", "clock_mhz", "queue_depth", "hbm", "memory",
    "picojoules_per_byte", "class"};
constexpr std::array<std::string_view, 6> kHbmKeys = {"preset", "channels", "interleave_bytes",
                                                      "map",    "refresh",  "policy"};
constexpr std::array<std::string_view, 5> kClassKeys = {"instructions", "latency", "interval",
                                                        "latency_into_f0", "picojoules"};

std::string_view line_of(std::string_view text, std::uint32_t line) {
  for (std::uint32_t i = 1; i < line; ++i) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  return text.substr(0, text.find('\n'));
}

std::vector<std::string_view> mnemonics() {
  std::vector<std::string_view> names;
  for (const InstructionRow& row : instruction_table()) names.push_back(row.mnemonic);
  return names;
}

class ProfileReader {
 public:
  ProfileReader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  Result<TimingProfile> read(const toml::table& table) {
    profile_.class_of.fill(kNoClass);
    profile_.hbm.preset = *dram::find_dram_preset(dram::kDefaultPreset);
    if (auto ok = check_keys(table, kProfileKeys); !ok) return tl::unexpected(ok.error());
    if (auto ok = read_base(table); !ok) return tl::unexpected(ok.error());
    profile_.name = file_;
    if (auto ok = read_scalars(table); !ok) return tl::unexpected(ok.error());
    if (profile_.memory == MemoryRules::PlenaRs && profile_.overlap != Overlap::Serial) {
      return error_at(table, "the memory of plena-rs blocks and goes with serial overlap only",
                      R"(overlap = "serial")");
    }
    if (auto ok = read_hbm(table); !ok) return tl::unexpected(ok.error());
    if (auto ok = read_classes(table); !ok) return tl::unexpected(ok.error());
    if (auto ok = require_all(); !ok) return tl::unexpected(ok.error());
    return std::move(profile_);
  }

  [[nodiscard]] SourcePlace place_of(const toml::source_position& at) const {
    return {file_, at.line, at.column, 1, std::string(line_of(text_, at.line))};
  }

 private:
  [[nodiscard]] tl::unexpected<Error> error_at(const toml::node& node, std::string message,
                                               std::string hint = {}) const {
    return tl::unexpected(Error{ErrorCode::Settings, std::move(message),
                                place_of(node.source().begin), std::move(hint)});
  }

  Status check_keys(const toml::table& table, std::span<const std::string_view> known) const {
    for (const auto& [key, node] : table) {
      if (std::ranges::find(known, key.str()) == known.end()) {
        return error_at(node, fmt::format("a timing profile has no key `{}`", key.str()),
                        did_you_mean(key.str(), known));
      }
    }
    return {};
  }

  Status read_base(const toml::table& table) {
    const toml::node* node = table.get("base");
    if (node == nullptr) return {};
    const auto name = node->value_exact<std::string>();
    const auto names = built_in_profiles();
    if (!name || std::ranges::find(names, *name) == names.end()) {
      return error_at(*node, "the base of a profile is a built-in one",
                      fmt::format("one of {}", fmt::join(names, ", ")));
    }
    auto base = load_profile(*name);
    if (!base) return tl::unexpected(base.error());
    profile_ = std::move(*base);
    return {};
  }

  Status read_scalars(const toml::table& table) {
    if (const toml::node* node = table.get("description")) {
      const auto text = node->value_exact<std::string>();
      if (!text) return error_at(*node, "the description is a string");
      profile_.description = *text;
    }
    if (const toml::node* node = table.get("overlap")) {
      if (auto ok = read_overlap(*node); !ok) return ok;
    } else if (table.get("base") == nullptr) {
      return error_at(table, "the profile does not say how instructions overlap",
                      R"(overlap = "serial", "pipelined" or "ideal")");
    }
    if (const toml::node* node = table.get("memory")) {
      const auto text = node->value_exact<std::string>();
      if (!text || (*text != "hbm" && *text != "plena-rs")) {
        return error_at(*node, "unknown memory rules", R"("hbm" or "plena-rs")");
      }
      profile_.memory = *text == "hbm" ? MemoryRules::Hbm : MemoryRules::PlenaRs;
    }
    if (auto ok = read_integer(table, "clock_mhz", kFastestClock, profile_.clock_mhz); !ok)
      return ok;
    if (auto ok = read_integer(table, "queue_depth", kDeepestQueue, profile_.queue_depth); !ok)
      return ok;
    return read_energy(table, "picojoules_per_byte", profile_.picojoules_per_byte);
  }

  Status read_overlap(const toml::node& node) {
    for (const Overlap overlap : {Overlap::Serial, Overlap::Pipelined, Overlap::Ideal}) {
      if (node.value_exact<std::string_view>() == overlap_name(overlap)) {
        profile_.overlap = overlap;
        return {};
      }
    }
    return error_at(node, "unknown way to overlap instructions",
                    R"("serial", "pipelined" or "ideal")");
  }

  Status read_integer(const toml::table& table, std::string_view key, std::int64_t largest,
                      std::uint32_t& out) const {
    const toml::node* node = table.get(key);
    if (node == nullptr) return {};
    const auto value = node->value_exact<std::int64_t>();
    if (!value || *value < 1 || *value > largest) {
      return error_at(*node, fmt::format("{} is a whole number from 1 to {}", key, largest));
    }
    out = static_cast<std::uint32_t>(*value);
    return {};
  }

  Status read_energy(const toml::table& table, std::string_view key,
                     std::optional<double>& out) const {
    const toml::node* node = table.get(key);
    if (node == nullptr) return {};
    const auto value = node->value<double>();  // whole numbers too
    if (!value || !(*value >= 0 && *value <= 1e15)) {
      return error_at(*node, fmt::format("{} is a number of at least 0", key));
    }
    out = value;
    return {};
  }

  Status read_hbm(const toml::table& table) {
    const toml::node* node = table.get("hbm");
    if (node == nullptr) return {};
    const toml::table* hbm = node->as_table();
    if (hbm == nullptr)
      return error_at(*node, "the memory is a table", R"(hbm = { channels = 4 })");
    if (auto ok = check_keys(*hbm, kHbmKeys); !ok) return ok;
    dram::DramSettings& settings = profile_.hbm;
    if (auto ok = read_named(*hbm, "preset", dram::find_dram_preset, settings.preset); !ok)
      return ok;
    settings.channels = settings.preset.default_channels;
    if (auto ok = read_integer(*hbm, "channels", kMostChannels, settings.channels); !ok) return ok;
    if (auto ok =
            read_integer(*hbm, "interleave_bytes", kWidestInterleave, settings.interleave_bytes);
        !ok)
      return ok;
    if (auto ok = read_named(*hbm, "map", dram::find_map, settings.map); !ok) return ok;
    if (auto ok = read_named(*hbm, "refresh", dram::find_refresh_mode, settings.refresh); !ok)
      return ok;
    if (auto ok = read_named(*hbm, "policy", find_policy, settings.policy); !ok) return ok;
    const auto controller = dram::Controller::make(settings);
    return controller ? Status() : error_at(*node, controller.error().message);
  }

  static Result<dram::Policy> find_policy(std::string_view name) {
    if (name == "open") return dram::kOpenPolicy;
    if (name == "reference") return dram::kReferencePolicy;
    return fail(ErrorCode::Usage, "no HBM policy is called {}: open or reference", name);
  }

  // A string that `find` turns into what it names.
  template <class Find, class Value>
  Status read_named(const toml::table& table, std::string_view key, Find&& find, Value& out) const {
    const toml::node* node = table.get(key);
    if (node == nullptr) return {};
    const auto text = node->value_exact<std::string_view>();
    if (!text) return error_at(*node, fmt::format("{} is a string", key));
    auto found = find(*text);
    if (!found) return error_at(*node, found.error().message, found.error().hint);
    out = *found;
    return {};
  }

  Status read_classes(const toml::table& table) {
    const toml::node* node = table.get("class");
    if (node == nullptr) return {};
    const toml::array* classes = node->as_array();
    if (classes == nullptr || !classes->is_array_of_tables()) {
      return error_at(*node, "classes are an array of tables", "[[class]]");
    }
    for (const toml::node& entry : *classes) {
      if (auto ok = read_class(*entry.as_table()); !ok) return ok;
    }
    return {};
  }

  Status read_class(const toml::table& table) {
    if (auto ok = check_keys(table, kClassKeys); !ok) return ok;
    ClassCost cost;
    auto latency = expression(table, "latency");
    if (!latency) return tl::unexpected(latency.error());
    if (!*latency) return error_at(table, "the class has no latency", R"(latency = "3")");
    cost.latency = std::move(**latency);
    auto interval = expression(table, "interval");
    if (!interval) return tl::unexpected(interval.error());
    cost.interval = *interval ? std::move(**interval) : *CycleExpression::parse("1", {});
    auto into_f0 = expression(table, "latency_into_f0");
    if (!into_f0) return tl::unexpected(into_f0.error());
    cost.latency_into_f0 = std::move(*into_f0);
    if (auto ok = read_energy(table, "picojoules", cost.picojoules); !ok) return ok;

    const auto index = static_cast<std::uint16_t>(profile_.classes.size());
    if (auto ok = read_members(table, index); !ok) return ok;
    profile_.classes.push_back(std::move(cost));
    return {};
  }

  Status read_members(const toml::table& table, std::uint16_t index) {
    const toml::node* node = table.get("instructions");
    const toml::array* members = node == nullptr ? nullptr : node->as_array();
    if (members == nullptr || members->empty()) {
      return error_at(node == nullptr ? table : *node, "the class names no instructions",
                      R"(instructions = ["M_MM", "M_TMM"])");
    }
    for (const toml::node& member : *members) {
      const auto mnemonic = member.value_exact<std::string_view>();
      const InstructionRow* row = mnemonic ? find_row(*mnemonic) : nullptr;
      if (row == nullptr) {
        return error_at(member, fmt::format("unknown instruction `{}`", mnemonic.value_or("")),
                        did_you_mean(mnemonic.value_or(""), mnemonics()));
      }
      const auto opcode = static_cast<std::size_t>(row->op);
      if (named_[opcode]) {
        return error_at(member, fmt::format("{} is in a class already", row->mnemonic));
      }
      named_[opcode] = true;
      profile_.class_of[opcode] = index;
    }
    return {};
  }

  // The expression under `key`, a string or a plain number, or nothing.
  Result<std::optional<CycleExpression>> expression(const toml::table& table,
                                                    std::string_view key) {
    const toml::node* node = table.get(key);
    if (node == nullptr) return std::optional<CycleExpression>();
    SourcePlace place = place_of(node->source().begin);
    std::string text;
    if (const auto number = node->value_exact<std::int64_t>()) {
      text = fmt::to_string(*number);
    } else if (const auto string = node->value_exact<std::string>()) {
      text = *string;
      ++place.column;  // behind the quotation mark
    } else {
      return error_at(*node, fmt::format("{} is an integer expression in quotes", key),
                      fmt::format(R"({} = "9 + 2*BLEN")", key));
    }
    auto parsed = CycleExpression::parse(text, place);
    if (!parsed) return tl::unexpected(parsed.error());
    return std::optional(std::move(*parsed));
  }

  Status require_all() const {
    std::vector<std::string_view> missing;
    for (const InstructionRow& row : instruction_table()) {
      if (profile_.class_of[static_cast<std::size_t>(row.op)] == kNoClass)
        missing.push_back(row.mnemonic);
    }
    if (missing.empty()) return {};
    Error error{ErrorCode::Settings,
                fmt::format("no class names {}", fmt::join(missing, ", ")),
                {},
                R"(add them to a [[class]], or take the rest from base = "pipelined")"};
    error.place.file = file_;
    return tl::unexpected(std::move(error));
  }

  std::string_view text_;
  const std::string& file_;
  TimingProfile profile_;
  std::array<bool, kOpcodeCount> named_{};
};

}  // namespace

Result<TimingProfile> parse_profile(std::string_view text, const std::string& file) {
  ProfileReader reader(text, file);
  try {
    const toml::table table = toml::parse(text, file);
    return reader.read(table);
  } catch (const toml::parse_error& problem) {
    return tl::unexpected(Error{ErrorCode::Format,
                                std::string(problem.description()),
                                reader.place_of(problem.source().begin),
                                {}});
  }
}

}  // namespace plena
