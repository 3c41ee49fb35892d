#include "plena/model/open_model.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "plena/base/files.h"
#include "plena/model/config_reader.h"
#include "plena/model/families/family.h"
#include "plena/model/gguf.h"
#include "plena/model/llama.h"
#include "plena/model/mingpt.h"
#include "plena/model/safetensors.h"

namespace plena {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

Result<const Architecture*> find_architecture(const json& config, const std::string& path) {
  ConfigReader reader(config, path);
  std::string known;
  const auto names = reader.texts("architectures");
  for (const Architecture& architecture : architectures()) {
    if (!names.empty() && names.front() == architecture.name) return &architecture;
    known += (known.empty() ? "" : ", ") + std::string(architecture.name);
  }
  return fail_with_hint(ErrorCode::Unsupported,
                        names.empty()
                            ? fmt::format("{} names no architecture", path)
                            : fmt::format("{}: unknown architecture {}", path, names.front()),
                        "known ones: " + known);
}

// Imports by the family's function; `storage` is what the tensors of `weights` look into.
Result<Model> import_model(const Architecture& architecture, const json& config_object,
                           const std::string& path, WeightReader weights,
                           std::vector<std::shared_ptr<const void>> storage) {
  ConfigReader config(config_object, path);
  Model model;
  model.architecture = architecture.name;
  architecture.import(config, weights, model);
  if (auto read = config.status(); !read) return forward_error(read);
  if (auto bound = weights.status(); !bound) return forward_error(bound);
  if (auto checked = check_model(model); !checked) {
    checked.error().message = fmt::format("{}: {}", path, checked.error().message);
    return forward_error(checked);
  }
  model.storage = std::move(storage);
  return model;
}

Result<Model> open_hugging_face(const std::string& config_path, const OpenModelOptions& options) {
  auto text = read_text(config_path);
  if (!text) return forward_error(text);
  const auto config = parse_json(*text, config_path);
  if (!config) return tl::unexpected(config.error());
  const auto architecture = find_architecture(*config, config_path);
  if (!architecture) return tl::unexpected(architecture.error());
  if (options.random_weights) {
    return import_model(**architecture, *config, config_path,
                        WeightReader::drawn(*options.random_weights), {});
  }
  const std::string folder = fs::path(config_path).parent_path().string();
  auto files = open_safetensors(folder.empty() ? "." : folder);
  if (!files) return forward_error(files);
  return import_model(**architecture, *config, config_path, WeightReader(files->table, folder),
                      files->storage);
}

Result<Model> open_mingpt(const json& object, const std::string& path) {
  auto tensors = read_mingpt_tensors(object, path);
  if (!tensors) return forward_error(tensors);
  static constexpr Architecture kMinGpt{"minGPT", import_gpt2};
  return import_model(kMinGpt, ConfigReader(object, path).object("config"), path,
                      WeightReader(tensors->table, path), tensors->storage);
}

Result<Model> open_json(const std::string& path, const OpenModelOptions& options) {
  auto text = read_text(path);
  if (!text) return forward_error(text);
  const auto object = parse_json(*text, path);
  if (!object) return tl::unexpected(object.error());
  return object->is_object() && object->contains("config") ? open_mingpt(*object, path)
                                                           : open_hugging_face(path, options);
}

Result<Model> open_gguf(MappedFile mapped, const std::string& path) {
  auto file = std::make_shared<const MappedFile>(std::move(mapped));
  const auto gguf = parse_gguf(file->bytes(), path);
  if (!gguf) return tl::unexpected(gguf.error());
  auto model = import_gguf(*gguf, path);
  if (!model) return forward_error(model);
  if (auto checked = check_model(*model); !checked) {
    checked.error().message = fmt::format("{}: {}", path, checked.error().message);
    return forward_error(checked);
  }
  model->storage.push_back(std::move(file));
  return model;
}

Result<Model> open_checkpoint(const std::string& path) {
  auto llama = open_llama2c(path);
  if (!llama) return forward_error(llama);
  return describe(*llama);
}

Result<Model> open_any(const std::string& path, const OpenModelOptions& options) {
  const auto found = find_model_file(path);
  if (!found) return tl::unexpected(found.error());
  auto file = MappedFile::open(*found);
  if (!file) return forward_error(file);
  if (is_gguf(file->bytes())) return open_gguf(*std::move(file), *found);
  const auto start = file->text().substr(0, 64);
  const auto first = start.find_first_not_of(" \t\r\n");
  const bool is_json = first != std::string_view::npos && start[first] == '{';
  return is_json ? open_json(*found, options) : open_checkpoint(*found);
}

Status keep_layers(Model& model, std::uint32_t layers, const std::string& path) {
  if (layers > model.layers.size()) {
    return fail(ErrorCode::Usage, "{} has {} layers, not {}", path, model.layers.size(), layers);
  }
  model.config.layers.resize(layers);
  model.layers.resize(layers);
  return {};
}

}  // namespace

bool is_llama2c_tokenizer_name(const std::string& name) {
  return name.starts_with("tok") && name.ends_with(".bin");
}

Result<std::string> find_model_file(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return path;
  const fs::path folder(path);
  if (const auto config = folder / "config.json"; fs::exists(config, ignored)) {
    return config.string();
  }
  std::vector<std::string> found;
  for (fs::directory_iterator at(folder, ignored), end; !ignored && at != end;
       at.increment(ignored)) {
    const std::string name = at->path().filename().string();
    const bool is_checkpoint = name.ends_with(".bin") && !is_llama2c_tokenizer_name(name);
    if (is_checkpoint || name.ends_with(".gguf")) found.push_back(at->path().string());
  }
  std::sort(found.begin(), found.end());
  if (found.size() == 1) return found.front();
  return fail_with_hint(
      ErrorCode::Usage, fmt::format("{} is neither an image nor a folder with one model", path),
      found.empty() ? "a folder has a config.json, or one .gguf or llama2.c .bin file"
                    : "name one of its files");
}

Result<Model> open_model(const std::string& path, const OpenModelOptions& options) {
  auto model = open_any(path, options);
  if (!model || options.layers == 0) return model;
  if (auto kept = keep_layers(*model, options.layers, path); !kept) return forward_error(kept);
  return model;
}

}  // namespace plena
