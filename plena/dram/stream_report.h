// What a run of a request stream is told as: text for people, JSON with the names of the public
// reference measurements.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "plena/dram/stream_case.h"
#include "plena/dram/stream_run.h"

namespace plena::dram {

/// Several lines that end in a newline.
std::string text_report(const StreamCase& stream, const StreamResult& result,
                        const std::optional<StreamComparison>& comparison);

nlohmann::ordered_json json_report(const StreamCase& stream, const StreamResult& result,
                                   const std::optional<StreamComparison>& comparison);

}  // namespace plena::dram
