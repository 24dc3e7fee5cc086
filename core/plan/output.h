// Converts the table [output] of a config to core/output/style.h, and reads logs.mode.
//
// Pure; any thread.
#pragma once

#include "core/base/result.h"
#include "core/output/style.h"
#include "core/spec/job_spec.h"

namespace dtrun::plan {

// Errors name the option and its place.
Result<output::Style> StyleOf(const spec::JobSpec& spec);

// The mode of the run's folder. Errors name the option and its place.
Result<unsigned> LogModeOf(const spec::JobSpec& spec);

// The ranks in output.ranks that the job does not have: a sentence, or nothing.
std::string RanksThatAreMissing(const output::Style& style, int world_size);

}  // namespace dtrun::plan
