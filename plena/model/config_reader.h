// Reading the numbers of a config.json with range checks. The first thing that is wrong is kept and
// everything after it reads as a default, so that a family's file is a plain list of keys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "plena/base/error.h"

namespace plena {

/// Parses `text`; what is no JSON, or nested so deep that working on it could exhaust the stack, is
/// an error that names `path` and the place.
Result<nlohmann::json> parse_json(std::string_view text, const std::string& path);

class ConfigReader {
 public:
  /// `object` outlives this; `name` stands for the file in errors.
  ConfigReader(const nlohmann::json& object, std::string name)
      : object_(object), name_(std::move(name)) {}

  [[nodiscard]] const std::string& name() const { return name_; }

  /// Whether the key is there with a value other than null.
  [[nodiscard]] bool has(std::string_view key) const;

  /// An integer in 1 … most.
  std::uint32_t count(std::string_view key, std::uint32_t most);
  std::uint32_t count(std::string_view key, std::uint32_t most, std::uint32_t otherwise);
  /// An integer in 0 … UINT32_MAX, absent where the key is.
  std::optional<std::uint32_t> id(std::string_view key);
  /// One integer or a list of them.
  std::vector<std::uint32_t> ids(std::string_view key);
  /// A number that f32 can hold.
  double number(std::string_view key);
  double number(std::string_view key, double otherwise);
  bool flag(std::string_view key, bool otherwise);
  std::string text(std::string_view key, std::string_view otherwise);
  std::vector<std::string> texts(std::string_view key);

  /// An object inside this one; without the key, or where the value is no object, an empty one.
  [[nodiscard]] const nlohmann::json& object(std::string_view key) const;

  /// Keeps an error unless there is one already.
  void reject(ErrorCode code, std::string message, std::string hint);

  [[nodiscard]] Status status() const;

 private:
  const nlohmann::json* find(std::string_view key) const;
  void expected(std::string_view key, std::string_view what);

  const nlohmann::json& object_;
  std::string name_;
  std::optional<Error> error_;
};

}  // namespace plena
