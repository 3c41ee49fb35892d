// Base64 (RFC 4648), in which JSON files carry binary data.
#pragma once

#include <optional>
#include <string_view>

#include "plena/base/files.h"

namespace plena {

/// The bytes of a text of whole groups of four, the last one filled up with `=`; nothing for
/// another.
std::optional<Bytes> decode_base64(std::string_view text);

}  // namespace plena
