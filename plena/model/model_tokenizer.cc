#include "plena/model/model_tokenizer.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include "plena/model/config_reader.h"
#include "plena/model/gguf.h"
#include "plena/model/open_model.h"
#include "plena/model/tokenizers/json_text.h"
#include "plena/model/tokenizers/parts.h"

namespace plena {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

Bytes to_bytes(const json& description) {
  const std::string text = description.dump(-1, ' ', false, json::error_handler_t::replace);
  return {text.begin(), text.end()};
}

// The object of a JSON file, or an empty one where there is no such file.
Result<json> read_object(const fs::path& path) {
  if (!is_there(path)) return json::object();
  const auto text = read_text(path.string());
  if (!text) return tl::unexpected(text.error());
  return parse_json(*text, path.string());
}

// `chat_template` is a template, or a list of named ones.
std::string chat_template_of(const json& config) {
  const json& given = member(config, "chat_template");
  if (given.is_string()) return given.get<std::string>();
  for (const json& entry : given) {
    if (member(entry, "name") == "default" && member(entry, "template").is_string()) {
      return member(entry, "template").get<std::string>();
    }
  }
  return "";
}

void add_id(json& ids, std::uint32_t id, std::uint32_t vocab) {
  if (id < vocab && std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
}

Result<Bytes> hugging_face_tokenizer(const fs::path& folder, const Model& model) {
  if (!is_there(folder / "tokenizer.json")) return Bytes();
  auto tokenizer = read_object(folder / "tokenizer.json");
  if (!tokenizer) return forward_error(tokenizer);
  const auto generation = read_object(folder / "generation_config.json");
  if (!generation) return tl::unexpected(generation.error());
  const auto config = read_object(folder / "tokenizer_config.json");
  if (!config) return tl::unexpected(config.error());
  if (!tokenizer->is_object()) {
    return fail(ErrorCode::Format, "{} is no object", (folder / "tokenizer.json").string());
  }
  std::string chat = chat_template_of(*config);
  if (const auto path = folder / "chat_template.jinja"; is_there(path)) {
    auto text = read_text(path.string());
    if (!text) return forward_error(text);
    chat = *std::move(text);
  }
  json ends = json::array();
  for (const std::uint32_t id : model.special.ends) add_id(ends, id, model.config.vocab);
  ConfigReader generation_reader(*generation, (folder / "generation_config.json").string());
  for (const std::uint32_t id : generation_reader.ids("eos_token_id")) {
    add_id(ends, id, model.config.vocab);
  }
  if (auto read = generation_reader.status(); !read) return forward_error(read);
  (*tokenizer)[kExtraKey] = {{"begin", model.special.begin ? json(*model.special.begin) : json()},
                             {"ends", std::move(ends)},
                             {"chat_template", std::move(chat)}};
  return to_bytes(*tokenizer);
}

Result<Bytes> gguf_tokenizer(const MappedFile& file, const std::string& path) {
  const auto gguf = parse_gguf(file.bytes(), path);
  if (!gguf) return tl::unexpected(gguf.error());
  if (!gguf->metadata.contains("tokenizer.ggml.model")) return Bytes();
  auto tokenizer = gguf_tokenizer_json(gguf->metadata);
  if (!tokenizer) {
    tokenizer.error().message = fmt::format("{}: {}", path, tokenizer.error().message);
    return forward_error(tokenizer);
  }
  return to_bytes(*tokenizer);
}

Result<std::string> find_llama2c_tokenizer(const fs::path& checkpoint, std::uint32_t vocab) {
  const fs::path folder = checkpoint.parent_path().empty() ? "." : checkpoint.parent_path();
  for (const auto& name : {fmt::format("tok{}.bin", vocab), std::string("tokenizer.bin")}) {
    if (is_there(folder / name)) return (folder / name).string();
  }
  std::vector<std::string> others;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (is_llama2c_tokenizer_name(name)) others.push_back(at->path().string());
  }
  if (others.size() == 1) return others.front();
  return fail_with_hint(
      ErrorCode::Usage,
      fmt::format("{} beside {}", others.empty() ? "no tokenizer" : "several tokenizers",
                  checkpoint.string()),
      "name it with --tokenizer FILE");
}

}  // namespace

Result<Bytes> find_tokenizer(const std::string& path, const Model& model) {
  const auto found = find_model_file(path);
  if (!found) return tl::unexpected(found.error());
  const fs::path file(*found);
  auto mapped = MappedFile::open(*found);
  if (!mapped) return forward_error(mapped);
  if (is_gguf(mapped->bytes())) return gguf_tokenizer(*mapped, *found);
  const auto start = mapped->text().substr(0, 64);
  const auto first = start.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && start[first] == '{') {
    return hugging_face_tokenizer(file.parent_path().empty() ? "." : file.parent_path(), model);
  }
  const auto tokenizer = find_llama2c_tokenizer(file, model.config.vocab);
  if (!tokenizer) return tl::unexpected(tokenizer.error());
  return read_file(*tokenizer);
}

}  // namespace plena
