// What `dtrun explain` adds about a job that runs: where its ranks are, and which one the others wait for.
//
// Asks the job, which has looked at its ranks since they began; any thread.
#pragma once

#include <filesystem>
#include <string>

#include "core/base/json.h"
#include "core/base/result.h"
#include "core/control/messages.h"

namespace dtrun::cli {

struct LiveLook {
  control::Answer answer;
  std::string folder;  // of the run, as a user may type it
};

// Errors: as AskJob.
Result<LiveLook> LookAtLive(const std::filesystem::path& folder);

// "running for 3 min 2 s, without output or recorded collectives for 2 min 50 s"
std::string StateOf(const LiveLook& live);
// Lines in two columns.
std::string ToText(const LiveLook& live);
Json ToJson(const LiveLook& live);

}  // namespace dtrun::cli
