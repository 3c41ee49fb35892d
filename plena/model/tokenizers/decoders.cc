#include <utility>

#include "plena/model/tokenizers/json_text.h"
#include "plena/model/tokenizers/text_steps.h"
#include "plena/model/tokenizers/vocabulary.h"

namespace plena {

namespace {

using nlohmann::json;

Result<TokenDecoder> make_sequence(const json& description) {
  std::vector<TokenDecoder> steps;
  for (const json& step : member(description, "decoders")) {
    auto made = make_decoder(step);
    if (!made) return made;
    steps.push_back(*std::move(made));
  }
  return [steps = std::move(steps)](std::string_view token, bool first) {
    std::string text(token);
    for (const TokenDecoder& step : steps) text = step(text, first);
    return text;
  };
}

// Tokenizers put Strip behind Fuse, where it takes characters off the start of the whole text.
Result<TokenDecoder> make_strip(const json& description) {
  const auto content = description.at("content").get<std::string>();
  const auto start = description.at("start").get<std::uint32_t>();
  if (description.at("stop").get<std::uint32_t>() != 0) {
    return fail(ErrorCode::Unsupported, "a decoder strips the end of a text");
  }
  return [=](std::string_view token, bool first) {
    for (std::uint32_t i = 0; first && i < start && token.starts_with(content); ++i) {
      token.remove_prefix(content.size());
    }
    return std::string(token);
  };
}

Result<TokenDecoder> make_metaspace(const json& description) {
  const std::string mark = member(description, "replacement").is_string()
                               ? member(description, "replacement").get<std::string>()
                               : "\u2581";
  const bool prepended = member(description, "prepend_scheme") != "never" &&
                         flag_of(description, "add_prefix_space", true);
  return [=](std::string_view token, bool first) {
    if (first && prepended && token.starts_with(mark)) token.remove_prefix(mark.size());
    return replace_all(token, mark, " ");
  };
}

}  // namespace

Result<TokenDecoder> make_decoder(const json& description) {
  const TokenDecoder keep = [](std::string_view token, bool) { return std::string(token); };
  if (description.is_null()) return keep;
  const std::string type = type_of(description);
  if (type == "Sequence") return make_sequence(description);
  if (type == "Fuse") return keep;
  if (type == "Strip") return make_strip(description);
  if (type == "Metaspace") return make_metaspace(description);
  if (type == "ByteLevel") {
    return [](std::string_view token, bool) { return alphabet_to_bytes(token); };
  }
  if (type == "ByteFallback") {
    return [](std::string_view token, bool) {
      const auto byte = parse_byte_piece(token);
      return byte ? std::string(1, *byte) : std::string(token);
    };
  }
  if (type == "Replace" && description.at("pattern").contains("String")) {
    const auto from = description.at("pattern").at("String").get<std::string>();
    const auto to = description.at("content").get<std::string>();
    return [=](std::string_view token, bool) { return replace_all(token, from, to); };
  }
  return unknown_kind("decoder", type,
                      "Sequence, Replace (of a string), ByteLevel, ByteFallback, Metaspace, Fuse, "
                      "Strip");
}

}  // namespace plena
