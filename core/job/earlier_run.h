// Handles files that an earlier run has left in a reused folder (logs.dir without {time}).
//
// No state; any thread.
#pragma once

#include <sys/types.h>

#include <string>

#include "core/base/result.h"

namespace dtrun::job {

// Moves records and logs of an earlier run, if any, into a new folder `name` with `mode` inside the open
// `folder` (`shown` is its name in errors). If the name is taken, it uses "name-2" and so on. Other files
// stay. Returns the new folder's name; empty: there was no earlier run.
Result<std::string> MoveEarlierRun(int folder, const std::string& shown, const std::string& name,
                                   mode_t mode);

}  // namespace dtrun::job
