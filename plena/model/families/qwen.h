// What the Qwen generations share beyond Llama.
#pragma once

#include "plena/model/config_reader.h"
#include "plena/model/model.h"

namespace plena {

/// sliding_window in the layers from max_window_layers on, where use_sliding_window is set.
void set_qwen_windows(ConfigReader& config, ModelConfig& sizes);

}  // namespace plena
