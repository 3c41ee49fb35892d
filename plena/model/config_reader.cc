#include "plena/model/config_reader.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

namespace plena {

using nlohmann::json;

namespace {

// An integer of either sign that fits; JSON writers also put 1.0.
std::optional<std::int64_t> as_integer(const json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return {};
    return static_cast<std::int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (!value.is_number_float()) return {};
  const auto number = value.get<double>();
  if (!(std::abs(number) < 0x1p53) || number != std::floor(number)) return {};
  return static_cast<std::int64_t>(number);
}

std::optional<std::uint32_t> as_id(const json& value) {
  const auto number = as_integer(value);
  if (!number || *number < 0 || *number > std::numeric_limits<std::uint32_t>::max()) return {};
  return static_cast<std::uint32_t>(*number);
}

constexpr std::size_t kMostNesting = 100;

// How deep lists and objects are nested in JSON text; in other text any number.
std::size_t nesting(std::string_view text) {
  std::size_t depth = 0;
  std::size_t most = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string && c == '\\') {
      ++at;  // what is escaped ends no string
    } else if (c == '"') {
      in_string = !in_string;
    } else if (!in_string && (c == '[' || c == '{')) {
      most = std::max(most, ++depth);
    } else if (!in_string && (c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return most;
}

}  // namespace

Result<json> parse_json(std::string_view text, const std::string& path) {
  if (nesting(text) > kMostNesting) {
    return fail(ErrorCode::Format, "{}: objects and lists are nested more than {} deep", path,
                kMostNesting);
  }
  try {
    return json::parse(text);
  } catch (const json::exception& e) {
    return fail(ErrorCode::Format, "{} is no JSON: {}", path, e.what());
  }
}

const json* ConfigReader::find(std::string_view key) const {
  if (!object_.is_object()) return nullptr;
  const auto at = object_.find(key);
  return at == object_.end() || at->is_null() ? nullptr : &*at;
}

bool ConfigReader::has(std::string_view key) const {
  return find(key) != nullptr;
}

void ConfigReader::reject(ErrorCode code, std::string message, std::string hint) {
  if (!error_) error_ = Error{code, std::move(message), {}, std::move(hint)};
}

void ConfigReader::expected(std::string_view key, std::string_view what) {
  const json* value = find(key);
  std::string found =
      value == nullptr ? "missing" : value->dump(-1, ' ', false, json::error_handler_t::replace);
  if (constexpr std::size_t kShown = 40; found.size() > kShown)
    found = found.substr(0, kShown) + "...";
  reject(ErrorCode::Format, fmt::format("{}: {} is {}", name_, key, found),
         fmt::format("{} is {}", key, what));
}

std::uint32_t ConfigReader::count(std::string_view key, std::uint32_t most) {
  const json* value = find(key);
  const auto number = value == nullptr ? std::nullopt : as_integer(*value);
  if (!number || *number < 1 || *number > most) {
    expected(key, fmt::format("an integer in 1 … {}", most));
    return 1;
  }
  return static_cast<std::uint32_t>(*number);
}

std::uint32_t ConfigReader::count(std::string_view key, std::uint32_t most,
                                  std::uint32_t otherwise) {
  return has(key) ? count(key, most) : otherwise;
}

std::optional<std::uint32_t> ConfigReader::id(std::string_view key) {
  const json* value = find(key);
  if (value == nullptr) return {};
  const auto number = as_id(*value);
  if (!number) expected(key, "an integer that is not negative");
  return number;
}

std::vector<std::uint32_t> ConfigReader::ids(std::string_view key) {
  const json* value = find(key);
  if (value == nullptr) return {};
  std::vector<std::uint32_t> found;
  const auto take = [&](const json& element) {
    if (const auto number = as_id(element)) {
      found.push_back(*number);
    } else {
      expected(key, "one or several integers that are not negative");
    }
  };
  if (value->is_array()) {
    for (const json& element : *value) take(element);
  } else {
    take(*value);
  }
  return found;
}

double ConfigReader::number(std::string_view key) {
  const json* value = find(key);
  constexpr double kMost = 1e30;  // fits f32, too
  if (value == nullptr || !value->is_number() || !(std::abs(value->get<double>()) <= kMost)) {
    expected(key, "a number");
    return 1;
  }
  return value->get<double>();
}

double ConfigReader::number(std::string_view key, double otherwise) {
  return has(key) ? number(key) : otherwise;
}

bool ConfigReader::flag(std::string_view key, bool otherwise) {
  const json* value = find(key);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean()) {
    expected(key, "true or false");
    return otherwise;
  }
  return value->get<bool>();
}

std::string ConfigReader::text(std::string_view key, std::string_view otherwise) {
  const json* value = find(key);
  if (value == nullptr) return std::string(otherwise);
  if (!value->is_string()) {
    expected(key, "a string");
    return std::string(otherwise);
  }
  return value->get<std::string>();
}

std::vector<std::string> ConfigReader::texts(std::string_view key) {
  const json* value = find(key);
  if (value == nullptr) return {};
  std::vector<std::string> found;
  if (!value->is_array()) expected(key, "a list of strings");
  for (const json& element : *value) {
    if (!element.is_string()) {
      expected(key, "a list of strings");
      return {};
    }
    found.push_back(element.get<std::string>());
  }
  return found;
}

const json& ConfigReader::object(std::string_view key) const {
  static const json kEmpty = json::object();
  const json* value = find(key);
  return value != nullptr && value->is_object() ? *value : kEmpty;
}

Status ConfigReader::status() const {
  if (error_) return tl::unexpected(*error_);
  return {};
}

}  // namespace plena
