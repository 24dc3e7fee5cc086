// The table [output] of a config, as core/output/style.h has it, and logs.mode.
//
// Pure; any thread.
#pragma once

#include "core/base/result.h"
#include "core/config/settings.h"
#include "core/output/style.h"

namespace dtrun::plan {

// Errors name the option and its place.
Result<output::Style> StyleOf(const config::Settings& settings);

// The mode of the run's folder; likewise.
Result<unsigned> LogModeOf(const config::Settings& settings);

// What of output.ranks the job does not have: a sentence, or nothing.
std::string RanksThatAreMissing(const output::Style& style, int world_size);

}  // namespace dtrun::plan
