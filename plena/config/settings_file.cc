// Reads a plena_settings.toml (semantics 1). Every complaint names the file and line.
#include <algorithm>
#include <cctype>
#include <optional>

#include <toml++/toml.h>

#include "plena/base/files.h"
#include "plena/config/keys.h"
#include "plena/config/settings.h"

namespace plena {

namespace {

constexpr std::int64_t kWidestField = 64;  // bits of a type's field; check() has the real ranges

std::string upper_case(std::string_view text) {
  std::string upper(text);
  std::ranges::transform(upper, upper.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return upper;
}

std::string_view line_of(std::string_view text, std::uint32_t line) {
  for (std::uint32_t i = 1; i < line; ++i) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  std::string_view found = text.substr(0, text.find('\n'));
  if (found.ends_with('\r')) found.remove_suffix(1);
  return found;
}

// Reads one section of one parsed file into `loaded`.
class SectionReader {
 public:
  SectionReader(std::string_view text, const std::string& file, std::string mode)
      : text_(text), file_(file), mode_(std::move(mode)) {}

  Result<LoadedSettings> read(const toml::table& section) {
    loaded_.settings.inert.clear();
    for (const auto& [key, node] : section) {
      const toml::table* table = node.as_table();
      Status ok;
      if (key == "CONFIG" && table != nullptr) {
        ok = read_config(*table);
      } else if (key == "PRECISION" && table != nullptr) {
        ok = read_precision(*table);
      } else if (key == "LATENCY" && table != nullptr) {
        ok = read_latency(*table);
      } else {
        warn_unknown(node, fmt::format("{}.{}", mode_, key.str()), {});
      }
      if (!ok) return tl::unexpected(ok.error());
    }
    if (auto ok = require_all(section); !ok) return tl::unexpected(ok.error());
    resolve_latency(loaded_.settings);
    warn_about_broadcast();
    return std::move(loaded_);
  }

  void warn_unknown(const toml::node& node, std::string_view path, std::string_view hint) {
    warn(node, fmt::format("unknown key {}{}{}", path, hint.empty() ? "" : ": ", hint));
  }

  [[nodiscard]] std::vector<std::string>& warnings() { return loaded_.warnings; }

 private:
  [[nodiscard]] tl::unexpected<Error> error_at(const toml::node& node, std::string message,
                                               std::string hint) const {
    const auto begin = node.source().begin;
    Error error{ErrorCode::Settings, std::move(message), {}, std::move(hint)};
    error.place = {file_, begin.line, begin.column, 1, std::string(line_of(text_, begin.line))};
    return tl::unexpected(std::move(error));
  }

  void warn(const toml::node& node, std::string_view message) {
    loaded_.warnings.push_back(
        fmt::format("{}:{}: warning: {}", file_, node.source().begin.line, message));
  }

  // A whole number from 0 to `largest` under `key` of `table`.
  Result<std::uint64_t> integer(const toml::table& table, std::string_view path,
                                std::string_view key, std::uint64_t largest) {
    const toml::node* node = table.get(key);
    if (node == nullptr) {
      return error_at(table, fmt::format("{} has no {}", path, key),
                      fmt::format("{} = n below [{}]", key, path));
    }
    const auto value = node->value_exact<std::int64_t>();
    if (!value || *value < 0 || static_cast<std::uint64_t>(*value) > largest) {
      return error_at(*node, fmt::format("{} of {} is not a whole number in range", key, path),
                      fmt::format("a number from 0 to {}", largest));
    }
    return static_cast<std::uint64_t>(*value);
  }

  void warn_other_keys(const toml::table& table, std::string_view path,
                       std::initializer_list<std::string_view> known) {
    for (const auto& [key, node] : table) {
      if (std::ranges::find(known, key.str()) != known.end()) continue;
      warn_unknown(node, fmt::format("{}.{}", path, key.str()), {});
    }
  }

  Status read_config(const toml::table& config) {
    for (const auto& [key, node] : config) {
      const std::string path = fmt::format("{}.CONFIG.{}", mode_, key.str());
      const IntegerKey* row = find_integer_key(key.str());
      if (row == nullptr && !is_inert_integer_key(key.str())) {
        warn_unknown(node, path, suggest_key(key.str()));
        continue;
      }
      const toml::table* table = node.as_table();
      if (table == nullptr) {
        return error_at(node, fmt::format("{} is not a table", path),
                        fmt::format("[{}] and below it value = n", path));
      }
      const std::uint64_t largest =
          row != nullptr && row->narrow != nullptr ? UINT32_MAX : INT64_MAX;
      const auto value = integer(*table, path, "value", largest);
      if (!value) return tl::unexpected(value.error());
      warn_other_keys(*table, path, {"value"});
      if (row != nullptr) {
        row->set(loaded_.settings, *value);
      } else {
        loaded_.settings.inert[std::string(key.str())] = *value;
      }
      if (key == "BROADCAST_AMOUNT") broadcast_ = table->get("value");
    }
    return {};
  }

  Status read_precision(const toml::table& precision) {
    for (const auto& [key, node] : precision) {
      const std::string path = fmt::format("{}.PRECISION.{}", mode_, key.str());
      const TypeKey* row = find_type_key(key.str());
      if (row == nullptr && key != kInertTypeKey) {
        warn_unknown(node, path, suggest_key(key.str()));
        continue;
      }
      const auto type = data_type(node, path);
      if (!type) return tl::unexpected(type.error());
      if (row != nullptr) loaded_.settings.*row->member = *type;
    }
    return {};
  }

  Status read_latency(const toml::table& latency) {
    for (const auto& [key, node] : latency) {
      const std::string path = fmt::format("{}.LATENCY.{}", mode_, key.str());
      const auto names = latency_names();
      if (std::ranges::find(names, key.str()) == names.end()) {
        warn_unknown(node, path, suggest_key(key.str()));
        continue;
      }
      const toml::table* table = node.as_table();
      if (table == nullptr) {
        return error_at(node, fmt::format("{} is not a table", path),
                        "dc_lib_en = n and dc_lib_dis = n below its header");
      }
      const auto enabled = integer(*table, path, "dc_lib_en", UINT32_MAX);
      if (!enabled) return tl::unexpected(enabled.error());
      const auto disabled = integer(*table, path, "dc_lib_dis", UINT32_MAX);
      if (!disabled) return tl::unexpected(disabled.error());
      warn_other_keys(*table, path, {"dc_lib_en", "dc_lib_dis"});
      loaded_.settings.latency_columns[std::string(key.str())] = {
          static_cast<std::uint32_t>(*enabled), static_cast<std::uint32_t>(*disabled)};
    }
    return {};
  }

  // `type = "Fp"` with sign, exponent, mantissa, or `type = "Int"` with width.
  Result<ElementType> element_type(const toml::table& table, const std::string& path) {
    const auto kind = table["type"].value<std::string_view>().value_or("");
    if (kind == "Int") {
      const auto width = integer(table, path, "width", kWidestField);
      if (!width) return tl::unexpected(width.error());
      warn_other_keys(table, path, {"type", "width"});
      return ElementType::integer(static_cast<int>(*width));
    }
    if (kind != "Fp") {
      return error_at(table, fmt::format("{} has no type that is known", path),
                      "type = \"Fp\" or type = \"Int\"");
    }
    const auto sign = table["sign"].value<bool>();
    if (!sign) {
      return error_at(table, fmt::format("{} does not say whether it has a sign", path),
                      "sign = true or sign = false");
    }
    const auto exponent = integer(table, path, "exponent", kWidestField);
    if (!exponent) return tl::unexpected(exponent.error());
    const auto mantissa = integer(table, path, "mantissa", kWidestField);
    if (!mantissa) return tl::unexpected(mantissa.error());
    warn_other_keys(table, path, {"type", "sign", "exponent", "mantissa"});
    return ElementType::fp(static_cast<int>(*exponent), static_cast<int>(*mantissa), *sign);
  }

  Result<ElementType> nested_element(const toml::table& table, const std::string& path,
                                     std::string_view key) {
    const toml::table* nested = table[key].as_table();
    if (nested == nullptr) {
      return error_at(table, fmt::format("{} has no {}", path, key),
                      fmt::format("[{}.{}] with the element's type", path, key));
    }
    return element_type(*nested, fmt::format("{}.{}", path, key));
  }

  Result<DataType> mx_type(const toml::table& table, const std::string& path) {
    const auto element = nested_element(table, path, "ELEM");
    if (!element) return tl::unexpected(element.error());
    const auto scale = nested_element(table, path, "SCALE");
    if (!scale) return tl::unexpected(scale.error());
    if (*scale != ElementType::fp(8, 0, false)) {
      return error_at(*table.get("SCALE"), fmt::format("{}.SCALE is not E8M0", path),
                      "type = \"Fp\", sign = false, exponent = 8, mantissa = 0");
    }
    const auto block = integer(table, path, "block", UINT32_MAX);
    if (!block) return tl::unexpected(block.error());
    if (*block == 0) {
      return error_at(*table.get("block"), fmt::format("{} has blocks of 0 elements", path),
                      "block = 8");
    }
    warn_other_keys(table, path, {"format", "block", "ELEM", "SCALE"});
    return DataType::mx(*element, static_cast<std::uint32_t>(*block));
  }

  // One [X.PRECISION.NAME] table; SCALAR_FP is written without a format.
  Result<DataType> data_type(const toml::node& node, const std::string& path) {
    const toml::table* table = node.as_table();
    if (table == nullptr) {
      return error_at(node, fmt::format("{} is not a table", path),
                      "format = \"Plain\" or format = \"Mx\" below its header");
    }
    const auto format = (*table)["format"].value<std::string_view>().value_or("");
    if (format == "Mx") return mx_type(*table, path);
    const bool bare = !table->contains("format") && table->contains("type");
    if (format != "Plain" && !bare) {
      return error_at(*table, fmt::format("{} has no format that is known", path),
                      "format = \"Plain\" or format = \"Mx\"");
    }
    if (!bare) warn_other_keys(*table, path, {"format", "DATA_TYPE"});
    const auto element =
        bare ? element_type(*table, path) : nested_element(*table, path, "DATA_TYPE");
    if (!element) return tl::unexpected(element.error());
    return DataType::plain(*element);
  }

  // A key without a default that the file lacks (semantics 1: a missing one is an error).
  Status require_all(const toml::table& section) {
    const toml::table* config = section["CONFIG"].as_table();
    std::string missing;
    for (const auto& key : integer_keys()) {
      if (!key.required || (config != nullptr && config->contains(key.name))) continue;
      missing += fmt::format("{}{}", missing.empty() ? "" : ", ", key.name);
    }
    if (missing.empty()) return {};
    return error_at(section, fmt::format("{} lacks {}", mode_, missing),
                    fmt::format("[{}.CONFIG.{}] and below it value = n", mode_,
                                missing.substr(0, missing.find(','))));
  }

  void warn_about_broadcast() {
    const Settings& s = loaded_.settings;
    if (broadcast_ == nullptr || s.hlen == 0) return;
    const std::uint64_t amount = s.inert.find("BROADCAST_AMOUNT")->second;
    if (amount == s.mlen / s.hlen) return;
    warn(*broadcast_, fmt::format("BROADCAST_AMOUNT = {} is not MLEN/HLEN = {}; it has no effect",
                                  amount, s.mlen / s.hlen));
  }

  std::string_view text_;
  const std::string& file_;
  std::string mode_;
  LoadedSettings loaded_;
  const toml::node* broadcast_ = nullptr;
};

Result<toml::table> parse_toml(std::string_view text, const std::string& file) {
  try {
    return toml::parse(text, file);
  } catch (const toml::parse_error& e) {
    const auto begin = e.source().begin;
    Error error{ErrorCode::Settings, std::string(e.description()), {}, {}};
    error.place = {file, begin.line, begin.column, 1, std::string(line_of(text, begin.line))};
    error.hint = "the file must be TOML, encoded as UTF-8";
    return tl::unexpected(std::move(error));
  }
}

tl::unexpected<Error> mode_error(const std::string& file, std::string message, std::string hint) {
  Error error{ErrorCode::Settings, std::move(message), {}, std::move(hint)};
  error.place.file = file;
  return tl::unexpected(std::move(error));
}

// A section is a table at the top with a CONFIG below it.
bool is_section(const toml::node& node) {
  const toml::table* table = node.as_table();
  return table != nullptr && (*table)["CONFIG"].is_table();
}

std::string section_names(const toml::table& document) {
  std::string names;
  for (const auto& [key, node] : document) {
    if (!is_section(node)) continue;
    std::string name(key.str());
    std::ranges::transform(name, name.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    names += (names.empty() ? "" : " or ") + name;
  }
  return names;
}

}  // namespace

Result<LoadedSettings> parse_settings(std::string_view text, const std::string& file,
                                      std::string_view mode) {
  auto document = parse_toml(text, file);
  if (!document) return forward_error(document);
  const std::string sections = section_names(*document);
  if (sections.empty()) {
    return mode_error(file, "no settings in this file",
                      "[MODE] active = \"transactional\" and [TRANSACTIONAL.CONFIG.…] tables");
  }
  if (mode.empty()) mode = (*document)["MODE"]["active"].value<std::string_view>().value_or("");
  if (mode.empty()) {
    return mode_error(file, "[MODE] active does not say which section counts",
                      fmt::format("active = one of {}, or --mode", sections));
  }
  const std::string name = upper_case(mode);
  const toml::node* section = document->get(name);
  if (section == nullptr || !is_section(*section)) {
    return mode_error(file, fmt::format("no section for the mode '{}'", mode), sections);
  }
  SectionReader reader(text, file, name);
  for (const auto& [key, node] : *document) {
    if (key != "MODE" && !is_section(node)) reader.warn_unknown(node, key.str(), {});
  }
  return reader.read(*section->as_table());
}

Result<LoadedSettings> load_settings(const std::string& path, std::string_view mode) {
  const auto text = read_text(path);
  if (!text) return tl::unexpected(text.error());
  return parse_settings(*text, path, mode);
}

}  // namespace plena
