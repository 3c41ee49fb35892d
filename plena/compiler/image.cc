// What an image means to a machine: its addresses checked, its contents put in place.
#include "plena/compiler/image.h"

#include <algorithm>
#include <utility>

namespace plena {

namespace {

bool inside(std::uint64_t first, std::uint64_t count, std::uint64_t size) {
  return first <= size && count <= size - first;
}

tl::unexpected<Error> bad_image(std::string reason) {
  return fail(ErrorCode::Format, "image: {}", std::move(reason));
}

Status check_inputs(const Manifest& manifest, std::uint32_t int_mem_depth) {
  if (manifest.token_address >= int_mem_depth) {
    return bad_image(fmt::format("the token goes to entry {} of INT_MEM, which has {}",
                                 manifest.token_address, int_mem_depth));
  }
  for (const PositionInput& input : manifest.position_inputs) {
    if (input.divide == 0) {
      return bad_image(fmt::format("position input {} divides by 0", input.name));
    }
    if (input.address >= int_mem_depth) {
      return bad_image(fmt::format("position input {} goes to entry {} of INT_MEM, which has {}",
                                   input.name, input.address, int_mem_depth));
    }
  }
  return {};
}

Status check_block(const Image& image) {
  const Manifest& manifest = image.manifest;
  if (!manifest.block) {
    if (manifest.causal) return {};
    return bad_image("a model that is not causal reads blocks, and there is no entry for them");
  }
  const BlockEntry& block = *manifest.block;
  const Settings& settings = image.settings;
  const std::uint64_t vram = settings.vector_sram_size * settings.vlen;
  const std::uint64_t tiles =
      (std::uint64_t{manifest.logits_at_once()} + settings.mlen - 1) / settings.mlen;
  const bool fits = block.tokens != 0 && block.entry != 0 &&
                    block.entry < image.program.words.size() &&
                    block.last_token_address < settings.int_sram_depth &&
                    inside(manifest.token_address, block.tokens, settings.int_sram_depth) &&
                    block.logits_stride <= vram / tiles &&
                    inside(block.logits_address, tiles * block.logits_stride, vram) &&
                    inside(block.logits_address, manifest.logits_at_once(), vram) &&
                    (block.logits_stride == 0 ||
                     block.logits_stride >= std::uint64_t{block.tokens} * settings.mlen);
  if (fits) return {};
  return bad_image("its entry for blocks of tokens leaves the program, the context or a memory");
}

Status check_batch(const Image& image) {
  if (!image.manifest.batch) return {};
  const BatchEntry& batch = *image.manifest.batch;
  const Settings& settings = image.settings;
  const std::uint64_t vram = settings.vector_sram_size * settings.vlen;
  const std::uint64_t tiles =
      (std::uint64_t{image.manifest.logits_at_once()} + settings.mlen - 1) / settings.mlen;
  const std::uint64_t inputs = std::uint64_t{batch.sequences} * (std::uint64_t{batch.inputs} + 1);
  const bool fits =
      batch.sequences > 1 && batch.sequences <= settings.int_sram_depth && batch.entry != 0 &&
      batch.entry < image.program.words.size() && batch.inputs <= settings.int_sram_depth &&
      inside(batch.inputs_address, inputs, settings.int_sram_depth) &&
      inside(batch.first_input, batch.inputs, settings.int_sram_depth) &&
      batch.sequence_address < settings.int_sram_depth && batch.logits_stride <= vram / tiles &&
      inside(batch.logits_address, tiles * batch.logits_stride, vram) &&
      batch.logits_stride >= std::uint64_t{batch.sequences} * settings.mlen &&
      std::uint64_t{batch.sequences} * batch.sequence_elements <= UINT32_MAX;
  if (fits) return {};
  return bad_image("its entry for sequences leaves the program or a memory");
}

Status check_routing(const Image& image) {
  if (!image.manifest.host_routing) return {};
  const HostRouting& routing = *image.manifest.host_routing;
  const Settings& settings = image.settings;
  if (inside(routing.logits_address, routing.experts, settings.vector_sram_size * settings.vlen) &&
      inside(routing.ids_address, routing.picks, settings.int_sram_depth) &&
      inside(routing.weights_address, routing.picks, settings.fp_sram_depth) &&
      routing.experts != 0) {
    return {};
  }
  return bad_image("the host's routing of experts leaves a memory");
}

Status check_pieces(const Image& image) {
  if (!image.manifest.logit_pieces) return {};
  const LogitPieces& pieces = *image.manifest.logit_pieces;
  if (pieces.logits != 0 && pieces.logits % image.settings.mlen == 0 &&
      pieces.so_far_address < image.settings.int_sram_depth) {
    return {};
  }
  return bad_image("pieces of its logits are no whole tiles, or are counted outside INT_MEM");
}

Status put_segment(const HbmSegment& segment, Machine& machine) {
  const Contents& bytes = segment.bytes;
  if (bytes.file() != nullptr) {
    return machine.hbm.map(segment.address, *bytes.file(), bytes.file_offset(), bytes.size());
  }
  return machine.write_elements(MemoryKind::Hbm, segment.address, bytes.bytes());
}

}  // namespace

Status check_image(const Image& image) {
  const Settings& settings = image.settings;
  const Manifest& manifest = image.manifest;
  if (auto checked = check(settings); !checked) return checked;
  if (image.program.words.empty()) return bad_image("the program is empty");
  if (manifest.vocab == 0) return bad_image("the vocabulary is empty");
  if (manifest.context == 0) return bad_image("the context has no positions");
  if (auto checked = check_inputs(manifest, settings.int_sram_depth); !checked) return checked;

  const std::uint64_t vram_elements = settings.vector_sram_size * settings.vlen;
  if (auto checked = check_pieces(image); !checked) return checked;
  if (!inside(manifest.logits_address, manifest.logits_at_once(), vram_elements)) {
    return bad_image(fmt::format("{} logits at element {} leave Vector SRAM, which has {}",
                                 manifest.logits_at_once(), manifest.logits_address,
                                 vram_elements));
  }
  if (auto checked = check_block(image); !checked) return checked;
  if (auto checked = check_batch(image); !checked) return checked;
  if (auto checked = check_routing(image); !checked) return checked;
  for (const HbmSegment& segment : image.hbm) {
    if (inside(segment.address, segment.bytes.size(), settings.hbm_size)) continue;
    return bad_image(fmt::format("{} bytes of {} at 0x{:X} leave HBM, which has {}",
                                 segment.bytes.size(), segment.name, segment.address,
                                 settings.hbm_size));
  }
  if (image.fp_mem.size() > settings.fp_sram_depth) {
    return bad_image(fmt::format("{} constants do not fit FP_MEM, which has {} entries",
                                 image.fp_mem.size(), settings.fp_sram_depth));
  }
  if (image.int_mem.size() > settings.int_sram_depth) {
    return bad_image(fmt::format("{} integers do not fit INT_MEM, which has {} entries",
                                 image.int_mem.size(), settings.int_sram_depth));
  }
  return {};
}

Status preload(const Image& image, Machine& machine) {
  for (const HbmSegment& segment : image.hbm) {
    if (!inside(segment.address, segment.bytes.size(), machine.hbm.size())) {
      return bad_image("the machine has other settings");
    }
    if (auto put = put_segment(segment, machine); !put) return put;
  }
  if (image.fp_mem.size() > machine.fp_mem.size() ||
      image.int_mem.size() > machine.int_mem.size()) {
    return bad_image("the machine has other settings");
  }
  std::copy(image.fp_mem.begin(), image.fp_mem.end(), machine.fp_mem.begin());
  std::copy(image.int_mem.begin(), image.int_mem.end(), machine.int_mem.begin());
  return {};
}

}  // namespace plena
