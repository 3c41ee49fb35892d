#include <utility>

#include "plena/model/tokenizers/charsmap.h"
#include "plena/model/tokenizers/json_text.h"
#include "plena/model/tokenizers/regex.h"
#include "plena/model/tokenizers/text_steps.h"
#include "plena/model/tokenizers/unicode.h"

namespace plena {

namespace {

using nlohmann::json;

Result<Normalizer> make_sequence(const json& description) {
  std::vector<Normalizer> steps;
  for (const json& step : member(description, "normalizers")) {
    auto made = make_normalizer(step);
    if (!made) return made;
    steps.push_back(*std::move(made));
  }
  return [steps = std::move(steps)](std::string text) {
    for (const Normalizer& step : steps) text = step(std::move(text));
    return text;
  };
}

Result<Normalizer> make_replace(const json& description) {
  const json& pattern = description.at("pattern");
  const auto content = description.at("content").get<std::string>();
  if (pattern.contains("String")) {
    const auto from = pattern.at("String").get<std::string>();
    return [=](const std::string& text) { return replace_all(text, from, content); };
  }
  auto regex = Regex::compile(pattern.at("Regex").get<std::string>());
  if (!regex) return forward_error(regex);
  return [regex = *regex, content](const std::string& text) {
    std::string replaced;
    std::size_t at = 0;
    for (const Regex::Match& match : regex.find_all(text)) {
      replaced.append(text, at, match.begin - at);
      replaced += content;
      at = match.end;
    }
    return replaced.append(text, at);
  };
}

Normalizer make_strip(const json& description) {
  const bool left = flag_of(description, "strip_left", true);
  const bool right = flag_of(description, "strip_right", true);
  return [=](const std::string& text) {
    std::size_t begin = text.size();  // of what stays
    std::size_t end = 0;
    for (std::size_t at = 0; at < text.size();) {
      const auto rest = std::string_view(text).substr(at);
      const std::size_t next = at + character_bytes(rest);
      if (!is_space(first_character(rest))) {
        begin = std::min(begin, at);
        end = next;
      }
      at = next;
    }
    if (!left) begin = 0;
    if (!right) end = text.size();
    return begin < end ? text.substr(begin, end - begin) : std::string();
  };
}

}  // namespace

Result<Normalizer> make_normalizer(const json& description) {
  if (description.is_null()) return [](std::string text) { return text; };
  const std::string type = type_of(description);
  const auto form = [](NormalForm f) {
    return [f](const std::string& text) { return normal_form(text, f); };
  };
  if (type == "Sequence") return make_sequence(description);
  if (type == "Replace") return make_replace(description);
  if (type == "Strip") return make_strip(description);
  if (type == "NFC") return form(NormalForm::C);
  if (type == "NFD") return form(NormalForm::D);
  if (type == "NFKC") return form(NormalForm::Kc);
  if (type == "NFKD") return form(NormalForm::Kd);
  if (type == "Lowercase") return [](const std::string& text) { return lower_case(text); };
  if (type == "Prepend") {
    const auto prefix = description.at("prepend").get<std::string>();
    return [=](const std::string& text) { return text.empty() ? text : prefix + text; };
  }
  if (type == "Precompiled") {
    auto map = Charsmap::parse(description.at("precompiled_charsmap").get<std::string>());
    if (!map) return forward_error(map);
    return [map = *std::move(map)](const std::string& text) { return map.apply(text); };
  }
  return unknown_kind("normalizer", type,
                      "Sequence, Replace, Prepend, Strip, Lowercase, NFC, NFD, NFKC, NFKD, "
                      "Precompiled");
}

}  // namespace plena
