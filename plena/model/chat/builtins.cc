// What templates may call.
#include <algorithm>
#include <cmath>

#include "plena/model/chat/expression.h"
#include "plena/model/tokenizers/json_text.h"

namespace plena::chat {

namespace {

constexpr std::string_view kSpaces = " \t\r\n\v\f";
constexpr std::int64_t kMostRange = 100'000;

const std::string& text_of(const Value& value, std::string_view what) {
  if (!value.is_string()) throw TemplateError(fmt::format("{} works on strings", what));
  return value.get_ref<const std::string&>();
}

const Value& argument(const std::vector<Value>& arguments, std::size_t index,
                      std::string_view what) {
  if (index >= arguments.size()) throw TemplateError(fmt::format("{} lacks an argument", what));
  return arguments[index];
}

enum class Sides { Left, Right, Both };

std::string strip(std::string text, std::string_view characters, Sides sides) {
  if (sides != Sides::Right) text.erase(0, text.find_first_not_of(characters));
  if (sides != Sides::Left) text.erase(text.find_last_not_of(characters) + 1);
  return text;
}

std::string ascii(std::string text, int (*change)(int)) {
  std::transform(text.begin(), text.end(), text.begin(), [change](char c) {
    return static_cast<unsigned char>(c) < 0x80 ? static_cast<char>(change(c)) : c;
  });
  return text;
}

std::string capitalize(std::string text) {
  text = ascii(std::move(text), std::tolower);
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

Value items(const Value& object) {
  if (!object.is_object()) throw TemplateError("items works on dicts");
  Value pairs = Value::array();
  for (const auto& [key, value] : object.items()) pairs.push_back(Value::array({key, value}));
  return pairs;
}

Value split(const std::string& text, const std::vector<Value>& arguments) {
  Value parts = Value::array();
  if (arguments.empty()) {  // at white space, without empty parts
    for (std::size_t at = text.find_first_not_of(kSpaces); at != std::string::npos;) {
      const std::size_t end = std::min(text.find_first_of(kSpaces, at), text.size());
      parts.push_back(text.substr(at, end - at));
      at = text.find_first_not_of(kSpaces, end);
    }
    return parts;
  }
  const std::string& separator = text_of(arguments[0], "split");
  if (separator.empty()) throw TemplateError("split needs a separator");
  std::size_t at = 0;
  for (std::size_t found; (found = text.find(separator, at)) != std::string::npos;) {
    parts.push_back(text.substr(at, found - at));
    at = found + separator.size();
  }
  parts.push_back(text.substr(at));
  return parts;
}

Value replaced(const std::string& text, const std::vector<Value>& arguments) {
  std::string result = replace_all(text, text_of(argument(arguments, 0, "replace"), "replace"),
                                   text_of(argument(arguments, 1, "replace"), "replace"));
  if (result.size() > kMostText) throw TemplateError("a string grows too long");
  return result;
}

std::size_t length(const Value& value) {
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
      return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    }));
  }
  if (value.is_array() || value.is_object()) return value.size();
  throw TemplateError("length works on strings, lists and dicts");
}

std::string join(const Value& list, const std::vector<Value>& arguments) {
  const std::string separator = arguments.empty() ? "" : to_text(arguments[0]);
  std::string joined;
  for (const Value& element : list) {
    if (&element != &list.front()) joined += separator;
    joined += to_text(element);
    if (joined.size() > kMostText) throw TemplateError("a string grows too long");
  }
  return joined;
}

// As Python's json.dumps does it, with ", " and ": ".
std::string to_json_text(const Value& value) {
  if (value.is_object() || value.is_array()) {
    std::string text;
    for (const auto& [key, element] : value.items()) {
      if (!text.empty()) text += ", ";
      if (value.is_object())
        text += Value(key).dump(-1, ' ', false, Value::error_handler_t::replace) + ": ";
      text += to_json_text(element);
    }
    return value.is_object() ? "{" + text + "}" : "[" + text + "]";
  }
  if (is_undefined(value)) throw TemplateError("tojson of what is not defined");
  return value.dump(-1, ' ', false, Value::error_handler_t::replace);
}

}  // namespace

Value apply_filter(const std::string& name, const Value& value,
                   const std::vector<Value>& arguments) {
  if (name == "trim") return strip(to_text(value), kSpaces, Sides::Both);
  if (name == "length" || name == "count") return length(value);
  if (name == "upper") return ascii(to_text(value), std::toupper);
  if (name == "lower") return ascii(to_text(value), std::tolower);
  if (name == "capitalize") return capitalize(to_text(value));
  if (name == "string") return to_text(value);
  if (name == "tojson") return to_json_text(value);
  if (name == "safe" || name == "list") return value;
  if (name == "items") return items(value);
  if (name == "join") return join(value, arguments);
  if (name == "replace") return replaced(to_text(value), arguments);
  if (name == "first" || name == "last") {
    if (!value.is_array() || value.empty()) return undefined();
    return name == "first" ? value.front() : value.back();
  }
  if (name == "default" || name == "d") {
    const bool falsy_too = arguments.size() > 1 && is_true(arguments[1]);
    const bool missing = is_undefined(value) || (falsy_too && !is_true(value));
    return missing ? argument(arguments, 0, "default") : value;
  }
  if (name == "int") {
    if (value.is_number_integer()) return value;
    return std::strtoll(to_text(value).c_str(), nullptr, 10);
  }
  throw TemplateError(fmt::format("unknown filter {}", name));
}

bool apply_test(const std::string& name, const Value& value, const std::vector<Value>& arguments) {
  if (name == "defined") return !is_undefined(value);
  if (name == "undefined") return is_undefined(value);
  if (name == "none") return value.is_null();
  if (name == "string") return value.is_string();
  if (name == "mapping") return value.is_object();
  if (name == "iterable" || name == "sequence") {
    return value.is_array() || value.is_string() || value.is_object();
  }
  if (name == "number") return value.is_number();
  if (name == "integer") return value.is_number_integer();
  if (name == "boolean") return value.is_boolean();
  if (name == "true") return value == true;
  if (name == "false") return value == false;
  if (name == "equalto" || name == "eq") return value == argument(arguments, 0, name);
  throw TemplateError(fmt::format("unknown test {}", name));
}

Value call_method(const Value& object, const std::string& name,
                  const std::vector<Value>& arguments) {
  if (object.is_object()) {
    if (name == "items") return items(object);
    if (name == "get") {
      const auto at = object.find(text_of(argument(arguments, 0, name), name));
      if (at != object.end()) return *at;
      return arguments.size() > 1 ? arguments[1] : Value();
    }
    throw TemplateError(fmt::format("unknown method {} of a dict", name));
  }
  const std::string& text = text_of(object, name);
  const std::string characters = arguments.empty() || !arguments[0].is_string()
                                     ? std::string(kSpaces)
                                     : arguments[0].get<std::string>();
  if (name == "strip") return strip(text, characters, Sides::Both);
  if (name == "lstrip") return strip(text, characters, Sides::Left);
  if (name == "rstrip") return strip(text, characters, Sides::Right);
  if (name == "startswith") return text.starts_with(text_of(argument(arguments, 0, name), name));
  if (name == "endswith") return text.ends_with(text_of(argument(arguments, 0, name), name));
  if (name == "upper") return ascii(text, std::toupper);
  if (name == "lower") return ascii(text, std::tolower);
  if (name == "capitalize") return capitalize(text);
  if (name == "split") return split(text, arguments);
  if (name == "replace") return replaced(text, arguments);
  throw TemplateError(fmt::format("unknown method {} of a string", name));
}

Value call_function(const std::string& name, const std::vector<Value>& arguments,
                    const Value& named) {
  if (name == "namespace") return named;
  if (name == "raise_exception") {
    throw TemplateError(to_text(argument(arguments, 0, name)));
  }
  if (name == "range") {
    std::int64_t begin = 0;
    std::int64_t end =
        argument(arguments, 0, name).is_number_integer() ? arguments[0].get<std::int64_t>() : 0;
    if (arguments.size() > 1 && arguments[1].is_number_integer()) {
      begin = std::exchange(end, arguments[1].get<std::int64_t>());
    }
    if (end > begin && (end > kMostRange || begin < -kMostRange))
      throw TemplateError("a range is too long");
    Value numbers = Value::array();
    for (std::int64_t i = begin; i < end; ++i) numbers.push_back(i);
    return numbers;
  }
  throw TemplateError(fmt::format("unknown function {}", name));
}

}  // namespace plena::chat
