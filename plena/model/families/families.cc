#include <array>

#include "plena/model/families/family.h"

namespace plena {

std::span<const Architecture> architectures() {
  static constexpr std::array<Architecture, 12> kArchitectures{{
      {"LlamaForCausalLM", import_llama},
      {"MistralForCausalLM", import_mistral},
      {"MixtralForCausalLM", import_mixtral},
      {"Qwen2ForCausalLM", import_qwen2},
      {"Qwen3ForCausalLM", import_qwen3},
      {"Qwen3MoeForCausalLM", import_qwen3_moe},
      {"Gemma2ForCausalLM", import_gemma2},
      {"Gemma3ForCausalLM", import_gemma3},
      {"GptOssForCausalLM", import_gpt_oss},
      {"GPT2LMHeadModel", import_gpt2},
      {"LLaDAModelLM", import_llada},
      {"LlamaForMaskedDiffusion", import_masked_llama},
  }};
  return kArchitectures;
}

}  // namespace plena
