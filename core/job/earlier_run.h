// What an earlier run has left in a folder that is used again (logs.dir without {time}).
//
// No state; any thread.
#pragma once

#include <sys/types.h>

#include <string>

#include "core/base/result.h"

namespace dtrun::job {

// Moves the records and logs of an earlier run, if there are any, into a new folder `name` inside the open
// `folder` (of `shown` for errors), which gets `mode`; "name-2" and so on where that is taken. Other files
// stay. Returns the new folder's name; empty: there was no earlier run.
Result<std::string> MoveEarlierRun(int folder, const std::string& shown, const std::string& name,
                                   mode_t mode);

}  // namespace dtrun::job
