// Asks a running job through the socket in its run folder.
//
// For verbs such as `dtrun ps` and `dtrun stacks`; any thread that may block.
#pragma once

#include <chrono>
#include <filesystem>

#include "core/base/result.h"
#include "core/control/messages.h"

namespace dtrun::control {

// Enough for kPlaces: the hosts have five seconds for a look, and another user's may come first.
inline constexpr std::chrono::seconds kPlacesLimit{15};

// DTRUN_NOT_FOUND: no job answers there: it has ended, its records were copied, or the socket is of another
// user. DTRUN_TIMEOUT: no answer within `limit`. Other errors are the job's own answer, such as that of
// another version. Root may ask jobs of others. After kStop, returns once the job has ended, however long
// that takes.
Result<Answer> AskJob(const std::filesystem::path& run_folder, const Question& question,
                      std::chrono::milliseconds limit);

}  // namespace dtrun::control
