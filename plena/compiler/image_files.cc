// Images as folders of plain files. docs/image.md describes them.
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <stdexcept>
#include <utility>

#include <nlohmann/json.hpp>

#include "plena/asm/assembler.h"
#include "plena/asm/mem_file.h"
#include "plena/compiler/image.h"

namespace plena {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::string_view kManifestFormat = "plena image 2";

std::string in_folder(const std::string& folder, std::string_view name) {
  return (fs::path(folder) / name).string();
}

// Words as little-endian elements of `unit` bytes, and back.
Bytes pack_words(const std::vector<std::uint32_t>& words, std::size_t unit) {
  Bytes bytes;
  bytes.reserve(words.size() * unit);
  for (const std::uint32_t word : words) {
    for (std::size_t i = 0; i < unit; ++i) {
      bytes.push_back(static_cast<std::uint8_t>(word >> (8 * i)));
    }
  }
  return bytes;
}

Result<std::vector<std::uint32_t>> read_words(const std::string& path, std::size_t unit) {
  const auto bytes = read_file(path);
  if (!bytes) return tl::unexpected(bytes.error());
  if (bytes->size() % unit != 0) {
    return fail(ErrorCode::Format, "{} has {} bytes, its elements take {}", path, bytes->size(),
                unit);
  }
  std::vector<std::uint32_t> words(bytes->size() / unit);
  for (std::size_t i = 0; i < bytes->size(); ++i) {
    words[i / unit] |= std::uint32_t{(*bytes)[i]} << (8 * (i % unit));
  }
  return words;
}

std::size_t scalar_bytes(const Settings& settings) {
  return state_file_bytes(settings.scalar_fp.element);
}

// ---- manifest.json

// Offsets of the segments in hbm.bin.
using Offsets = std::vector<std::uint64_t>;

Json manifest_json(const Image& image, const Offsets& offsets) {
  const Manifest& m = image.manifest;
  Json positions = Json::array();
  for (const PositionInput& input : m.position_inputs) {
    positions.push_back({{"name", input.name},
                         {"int_mem", input.address},
                         {"subtract", input.subtract},
                         {"divide", input.divide},
                         {"modulo", input.modulo},
                         {"multiply", input.multiply},
                         {"add", input.add},
                         {"of_last", input.of_last}});
  }
  Json segments = Json::array();
  for (std::size_t i = 0; i < image.hbm.size(); ++i) {
    segments.push_back({{"name", image.hbm[i].name},
                        {"address", image.hbm[i].address},
                        {"bytes", image.hbm[i].bytes.size()},
                        {"offset", offsets[i]}});
  }
  Json json = {{"format", kManifestFormat},
               {"model", m.model},
               {"isa", image.dialect.name()},
               {"vocab", m.vocab},
               {"context", m.context},
               {"causal", m.causal},
               {"inputs", {{"token", {{"int_mem", m.token_address}}}, {"position", positions}}},
               {"outputs", {{"logits", {{"vram", m.logits_address}}}}},
               {"hbm", segments}};
  if (m.logit_pieces) {
    json["logit_pieces"] = {{"logits", m.logit_pieces->logits},
                            {"so_far", {{"int_mem", m.logit_pieces->so_far_address}}}};
  }
  if (m.block) {
    json["block"] = {{"tokens", m.block->tokens},
                     {"entry", m.block->entry},
                     {"last_token", {{"int_mem", m.block->last_token_address}}},
                     {"logits", {{"vram", m.block->logits_address}}},
                     {"logits_stride", m.block->logits_stride}};
  }
  if (m.batch) {
    const BatchEntry& b = *m.batch;
    json["batch"] = {{"sequences", b.sequences},
                     {"entry", b.entry},
                     {"inputs", {{"int_mem", b.inputs_address}}},
                     {"of_position", {{"int_mem", b.first_input}, {"count", b.inputs}}},
                     {"sequence", {{"int_mem", b.sequence_address}}},
                     {"sequence_elements", b.sequence_elements},
                     {"logits", {{"vram", b.logits_address}}},
                     {"logits_stride", b.logits_stride}};
  }
  if (m.host_routing) {
    const HostRouting& r = *m.host_routing;
    json["host_routing"] = {{"logits", {{"vram", r.logits_address}}},
                            {"experts", r.experts},
                            {"picks", r.picks},
                            {"ids", {{"int_mem", r.ids_address}}},
                            {"weights", {{"fp_mem", r.weights_address}}}};
  }
  return json;
}

// A non-negative integer that fits T, as get<>() itself would not insist.
template <class T>
T unsigned_field(const Json& object, const char* key) {
  const Json& value = object.at(key);
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > std::numeric_limits<T>::max()) {
    throw std::out_of_range(fmt::format("\"{}\" is not an unsigned {}-bit integer", key,
                                        std::numeric_limits<T>::digits));
  }
  return value.get<T>();
}

Manifest parse_manifest(const Json& json) {
  Manifest m;
  m.model = json.at("model").get<std::string>();
  m.vocab = unsigned_field<std::uint32_t>(json, "vocab");
  m.context = unsigned_field<std::uint32_t>(json, "context");
  const Json& inputs = json.at("inputs");
  m.token_address = unsigned_field<std::uint32_t>(inputs.at("token"), "int_mem");
  for (const Json& position : inputs.at("position")) {
    m.position_inputs.push_back(
        {position.at("name").get<std::string>(), unsigned_field<std::uint32_t>(position, "int_mem"),
         unsigned_field<std::uint32_t>(position, "subtract"),
         unsigned_field<std::uint32_t>(position, "divide"),
         unsigned_field<std::uint32_t>(position, "modulo"),
         unsigned_field<std::uint32_t>(position, "multiply"),
         unsigned_field<std::uint32_t>(position, "add"), position.at("of_last").get<bool>()});
  }
  m.logits_address = unsigned_field<std::uint64_t>(json.at("outputs").at("logits"), "vram");
  m.causal = json.at("causal").get<bool>();
  if (json.contains("logit_pieces")) {
    const Json& pieces = json.at("logit_pieces");
    m.logit_pieces = {unsigned_field<std::uint32_t>(pieces, "logits"),
                      unsigned_field<std::uint32_t>(pieces.at("so_far"), "int_mem")};
  }
  if (json.contains("block")) {
    const Json& block = json.at("block");
    m.block = {unsigned_field<std::uint32_t>(block, "tokens"),
               unsigned_field<std::uint32_t>(block, "entry"),
               unsigned_field<std::uint32_t>(block.at("last_token"), "int_mem"), m.logits_address,
               unsigned_field<std::uint64_t>(block, "logits_stride")};
    if (block.contains("logits")) {
      m.block->logits_address = unsigned_field<std::uint64_t>(block.at("logits"), "vram");
    }
  }
  if (json.contains("batch")) {
    const Json& batch = json.at("batch");
    m.batch = {unsigned_field<std::uint32_t>(batch, "sequences"),
               unsigned_field<std::uint32_t>(batch, "entry"),
               unsigned_field<std::uint32_t>(batch.at("inputs"), "int_mem"),
               unsigned_field<std::uint32_t>(batch.at("of_position"), "int_mem"),
               unsigned_field<std::uint32_t>(batch.at("of_position"), "count"),
               unsigned_field<std::uint32_t>(batch.at("sequence"), "int_mem"),
               unsigned_field<std::uint32_t>(batch, "sequence_elements"),
               unsigned_field<std::uint64_t>(batch.at("logits"), "vram"),
               unsigned_field<std::uint64_t>(batch, "logits_stride")};
  }
  if (!json.contains("host_routing")) return m;
  const Json& routing = json.at("host_routing");
  m.host_routing = {unsigned_field<std::uint64_t>(routing.at("logits"), "vram"),
                    unsigned_field<std::uint32_t>(routing, "experts"),
                    unsigned_field<std::uint32_t>(routing, "picks"),
                    unsigned_field<std::uint32_t>(routing.at("ids"), "int_mem"),
                    unsigned_field<std::uint32_t>(routing.at("weights"), "fp_mem")};
  return m;
}

// Segments of hbm.bin, which ends with the last one.
std::vector<HbmSegment> cut_segments(const Json& list, MappedFile contents) {
  const auto file = std::make_shared<const MappedFile>(std::move(contents));
  const std::uint64_t size = file->bytes().size();
  std::vector<HbmSegment> segments;
  std::uint64_t end = 0;
  for (const Json& item : list) {
    const auto count = unsigned_field<std::uint64_t>(item, "bytes");
    const auto offset = unsigned_field<std::uint64_t>(item, "offset");
    if (count > size || offset > size - count) {
      throw std::out_of_range(
          fmt::format("its segments are longer than hbm.bin with {} bytes, "
                      "which may be incomplete",
                      size));
    }
    end = std::max(end, offset + count);
    segments.push_back({item.at("name").get<std::string>(),
                        unsigned_field<std::uint64_t>(item, "address"),
                        Contents(file, offset, count)});
  }
  if (end != size) throw std::out_of_range("its segments are shorter than hbm.bin");
  return segments;
}

Status read_manifest(const std::string& folder, Image& image) {
  const auto path = in_folder(folder, "manifest.json");
  const auto text = read_text(path);
  if (!text) return tl::unexpected(text.error());
  auto hbm = MappedFile::open(in_folder(folder, "hbm.bin"));
  if (!hbm) return tl::unexpected(hbm.error());
  // What the JSON library and the fields above throw ends here.
  try {
    const auto json = Json::parse(*text);
    if (json.at("format") != kManifestFormat) {
      return fail_with_hint(ErrorCode::Format,
                            fmt::format("{}: unknown format {}", path, json.at("format").dump()),
                            fmt::format("\"{}\" is read here", kManifestFormat));
    }
    auto dialect = Dialect::parse(json.at("isa").get<std::string>());
    if (!dialect) return tl::unexpected(dialect.error());
    image.dialect = *dialect;
    image.manifest = parse_manifest(json);
    image.hbm = cut_segments(json.at("hbm"), *std::move(hbm));
  } catch (const std::exception& problem) {
    return fail(ErrorCode::Format, "{}: {}", path, problem.what());
  }
  return {};
}

// ---- program.mem and program.asm

// The words come from program.mem; the text gives each its line, for what traps say. A text that
// says something else would mislead whoever edits it.
Status read_program(const std::string& folder, Image& image) {
  auto words = read_mem_file(in_folder(folder, "program.mem"));
  if (!words) return tl::unexpected(words.error());
  const auto path = in_folder(folder, "program.asm");
  auto text = read_text(path);
  if (!text) return tl::unexpected(text.error());
  auto assembly = assemble(*text, {path, image.dialect, integer_symbols(image.settings)});
  if (!assembly.ok()) return tl::unexpected(first_error(assembly));
  if (assembly.program.words != *words) {
    return fail_with_hint(ErrorCode::Format, fmt::format("{} is not the text of program.mem", path),
                          "plena asm program.asm -o program.mem makes them agree");
  }
  image.program = std::move(assembly.program);
  image.assembly = *std::move(text);
  return {};
}

// ---- folders

Bytes to_bytes(std::string_view text) {
  return {text.begin(), text.end()};
}

// The file without a name that holds what a compiler just packed.
const MappedFile* packed_file(const Image& image) {
  const MappedFile* file = image.hbm.empty() ? nullptr : image.hbm[0].bytes.file().get();
  for (const HbmSegment& segment : image.hbm) {
    if (segment.bytes.file().get() != file) return nullptr;
  }
  return file;
}

// hbm.bin, which may be there already under no name.
Result<Offsets> write_hbm(const Image& image, const std::string& path) {
  Offsets offsets;
  if (const MappedFile* packed = packed_file(image);
      packed != nullptr && give_name(*packed, path)) {
    for (const HbmSegment& segment : image.hbm) offsets.push_back(segment.bytes.file_offset());
    return offsets;
  }
  auto writer = FileWriter::create(path);
  if (!writer) return forward_error(writer);
  std::uint64_t end = 0;
  for (const HbmSegment& segment : image.hbm) {
    offsets.push_back(segment_offset(end, segment.address));
    if (auto gap = writer->append_zeros(offsets.back() - end); !gap) return forward_error(gap);
    auto written = writer->append(segment.bytes.bytes());
    if (!written) return forward_error(written);
    end = offsets.back() + segment.bytes.size();
  }
  if (auto done = writer->commit(); !done) return forward_error(done);
  return offsets;
}

Status write_files(const Image& image, const std::string& folder) {
  const auto offsets = write_hbm(image, in_folder(folder, "hbm.bin"));
  if (!offsets) return tl::unexpected(offsets.error());
  const std::pair<std::string_view, Contents> files[] = {
      {"manifest.json", to_bytes(manifest_json(image, *offsets).dump(2) + "\n")},
      {"program.mem", to_bytes(mem_text(image.program.words))},
      {"program.asm", to_bytes(image.assembly)},
      {"settings.toml", to_bytes(to_toml(image.settings))},
      {"fp_mem.bin", pack_words(image.fp_mem, scalar_bytes(image.settings))},
      {"int_mem.bin", pack_words(image.int_mem, sizeof(std::uint32_t))},
      {"tokenizer.bin", image.tokenizer},
  };
  for (const auto& [name, contents] : files) {
    auto written = write_file(in_folder(folder, name), contents.bytes());
    if (!written) return written;
  }
  return {};
}

// A new folder beside `target`, removed with all it holds unless it was moved away.
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> beside(const fs::path& target) {
    std::error_code error;
    if (target.has_parent_path()) fs::create_directories(target.parent_path(), error);
    std::string path = target.string() + ".XXXXXX";
    if (error || ::mkdtemp(path.data()) == nullptr) {
      return fail(ErrorCode::Io, "cannot create {}: {}", target.string(),
                  error ? error.message() : std::strerror(errno));
    }
    fs::permissions(path, fs::perms(0755), error);
    return TemporaryFolder(std::move(path));
  }
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

fs::path target_of(const std::string& folder) {
  fs::path target = fs::path(folder).lexically_normal();
  return target.has_filename() ? target : target.parent_path();  // `out/`
}

// Whether writing an image to `target` destroys nothing but an image.
bool may_replace(const fs::path& target) {
  std::error_code ignored;
  if (!fs::exists(fs::symlink_status(target, ignored))) return true;
  return fs::is_directory(target, ignored) &&
         (is_image_folder(target) || fs::is_empty(target, ignored));
}

// Puts a complete folder in the place of an older image, an empty folder or nothing.
Status move_into_place(const std::string& complete, const fs::path& target) {
  std::error_code error;
  if (!fs::exists(target, error)) {
    fs::rename(complete, target, error);
  } else {
    auto old = TemporaryFolder::beside(target);
    if (!old) return tl::unexpected(old.error());
    fs::rename(target, old->path(), error);
    if (!error) fs::rename(complete, target, error);
  }
  if (error) return fail(ErrorCode::Io, "cannot write {}: {}", target.string(), error.message());
  return {};
}

}  // namespace

std::uint64_t segment_offset(std::uint64_t end, std::uint64_t address) {
  constexpr std::uint64_t kPage = 4096;
  return end + (address - end) % kPage;
}

bool is_image_folder(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(fs::path(path) / "manifest.json", ignored);
}

Status check_image_target(const std::string& folder) {
  if (may_replace(target_of(folder))) return {};
  return fail_with_hint(ErrorCode::Io, fmt::format("{} exists and is not an image", folder),
                        "name a new folder or one that holds an image");
}

Status save_image(const Image& image, const std::string& folder) {
  if (auto usable = check_image_target(folder); !usable) return usable;
  const fs::path target = target_of(folder);
  const auto complete = TemporaryFolder::beside(target);
  if (!complete) return tl::unexpected(complete.error());
  if (auto written = write_files(image, complete->path()); !written) return written;
  return move_into_place(complete->path(), target);
}

Result<Image> load_image(const std::string& folder) {
  if (!is_image_folder(folder)) {
    return fail_with_hint(ErrorCode::Io, fmt::format("{} is not an image folder", folder),
                          "plena compile MODEL -o DIR makes one, with a manifest.json");
  }
  Image image;
  if (auto read = read_manifest(folder, image); !read) return tl::unexpected(read.error());
  auto settings = load_settings(in_folder(folder, "settings.toml"));
  if (!settings) return forward_error(settings);
  image.settings = std::move(settings->settings);
  if (auto read = read_program(folder, image); !read) return tl::unexpected(read.error());
  auto fp_mem = read_words(in_folder(folder, "fp_mem.bin"), scalar_bytes(image.settings));
  if (!fp_mem) return forward_error(fp_mem);
  image.fp_mem = *std::move(fp_mem);
  auto int_mem = read_words(in_folder(folder, "int_mem.bin"), sizeof(std::uint32_t));
  if (!int_mem) return forward_error(int_mem);
  image.int_mem = *std::move(int_mem);
  auto tokenizer = MappedFile::open(in_folder(folder, "tokenizer.bin"));
  if (!tokenizer) return forward_error(tokenizer);
  const std::uint64_t tokenizer_bytes = tokenizer->bytes().size();
  image.tokenizer =
      Contents(std::make_shared<const MappedFile>(*std::move(tokenizer)), 0, tokenizer_bytes);

  if (auto checked = check_image(image); !checked) {
    checked.error().message = fmt::format("{}: {}", folder, checked.error().message);
    return tl::unexpected(checked.error());
  }
  return image;
}

}  // namespace plena
