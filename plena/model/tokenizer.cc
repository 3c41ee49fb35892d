#include "plena/model/tokenizer.h"

#include <nlohmann/json.hpp>

#include "plena/base/files.h"
#include "plena/model/config_reader.h"
#include "plena/model/tokenizers/unicode.h"

namespace plena {

namespace {

void append(std::vector<std::uint32_t>& ids, std::span<const std::uint32_t> more) {
  ids.insert(ids.end(), more.begin(), more.end());
}

}  // namespace

Result<Tokenizer> Tokenizer::open(const std::string& path, std::uint32_t vocab) {
  auto file = MappedFile::open(path);
  if (!file) return forward_error(file);
  return parse(file->bytes(), vocab, path);
}

Result<Tokenizer> Tokenizer::parse(std::span<const std::uint8_t> file, std::uint32_t vocab,
                                   std::string_view name) {
  const bool is_json = !file.empty() && file.front() == '{';
  if (!is_json) {
    auto parts = read_llama2c_tokenizer(file, vocab, name);
    if (!parts) return forward_error(parts);
    return Tokenizer(*std::move(parts), vocab);
  }
  const std::string path(name);
  const auto description =
      parse_json({reinterpret_cast<const char*>(file.data()), file.size()}, path);
  if (!description) return tl::unexpected(description.error());
  auto parts = read_json_tokenizer(*description, vocab);
  if (!parts) {
    parts.error().message = fmt::format("{}: {}", name, parts.error().message);
    return forward_error(parts);
  }
  return Tokenizer(*std::move(parts), vocab);
}

std::vector<std::uint32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<std::uint32_t> ids = parts_.before;
  append(ids, encode_inner(text));
  append(ids, parts_.after);
  return ids;
}

std::vector<std::uint32_t> Tokenizer::encode_inner(std::string_view text) const {
  std::string repaired;
  if (!parts_.keeps_bytes) text = repaired = repair_utf8(text);
  std::vector<std::uint32_t> ids;
  bool at_start = true;
  for (const TextSection& section : parts_.raw_tokens.split(text)) {
    if (section.token) {
      ids.push_back(*section.token);
    } else {
      encode_section(section.text, at_start, ids);
    }
    at_start = false;
  }
  return ids;
}

void Tokenizer::encode_section(std::string_view text, bool at_start,
                               std::vector<std::uint32_t>& ids) const {
  const std::string normal = parts_.normalizer(std::string(text));
  for (const TextSection& section : parts_.normal_tokens.split(normal)) {
    if (section.token) {
      ids.push_back(*section.token);
    } else {
      for (const TextPiece& piece : parts_.pre_tokenizer({{std::string(section.text), at_start}})) {
        parts_.model->encode(piece.text, ids);
      }
    }
    at_start = false;
  }
}

std::string Tokenizer::decode(std::uint32_t previous, std::uint32_t id) const {
  if (id >= parts_.vocabulary->size() || parts_.silent.contains(id)) return {};
  if (const auto added = parts_.added.find(id); added != parts_.added.end()) return added->second;
  const bool first = previous == kNoToken || previous == parts_.special.begin;
  return parts_.decoder(parts_.vocabulary->piece(id), first);
}

std::string Tokenizer::decode(std::span<const std::uint32_t> ids) const {
  std::string text;
  std::uint32_t previous = kNoToken;
  for (const std::uint32_t id : ids) {
    text += decode(previous, id);
    if (!parts_.silent.contains(id)) previous = id;
  }
  return text;
}

std::string_view Tokenizer::piece(std::uint32_t id) const {
  return id < parts_.vocabulary->size() ? std::string_view(parts_.vocabulary->piece(id))
                                        : std::string_view();
}

}  // namespace plena
