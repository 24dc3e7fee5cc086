// Checks that a program's MPI matches the mpirun that started it. On a mismatch each rank forms a world of
// one and succeeds: a wrong result without an error.
//
// Any thread.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/pmi/kind.h"

namespace dtrun::mpirun {

// Checks the libraries that the file of `command` is linked with. A program without MPI matches. `served`:
// the interface that mpirun serves (Identity::served). The error names the program, both MPIs and the next
// step.
Status CheckMpi(const std::vector<std::string>& command, pmi::Kind served);

// The MPI that a process or its descendants have loaded so far: scripts load MPI late.
enum class Loaded { kNone, kOwn, kForeign };
Loaded LoadedBy(pid_t process, pmi::Kind served);
// `maps`: text in the format of /proc/PID/maps.
Loaded LoadedIn(const std::string& maps, pmi::Kind served);

// The message for kForeign.
std::string ForeignText(pmi::Kind served);

}  // namespace dtrun::mpirun
