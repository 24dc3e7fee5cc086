// The source files of programs, as the processes that run them see them.
//
// Keeps what it has read, for all processes, until a file has changed: looks come several times a second, and
// the files of a package are large. Any thread that may block; the result, one thread.
#pragma once

#include <sys/types.h>

#include "core/stacks/place.h"

namespace dtrun::stacks {

// Reads the files of `pid`. Keep it no longer than one look: it does not notice changes.
Source SourceOf(pid_t pid);

}  // namespace dtrun::stacks
