// Whether the MPI of a program is that of the mpirun which has started it. If not, each of its ranks makes a
// world of one and succeeds: a wrong result without a word.
//
// Any thread.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/pmi/kind.h"

namespace dtrun::mpirun {

// By the file that `command` starts, and what it is linked with; what is not linked with an MPI fits.
// `served` is what the mpirun serves (Identity::served). The error names program, both MPIs and the next
// step.
Status CheckMpi(const std::vector<std::string>& command, pmi::Kind served);

// Which MPI a process, or one below it, has loaded by now: scripts load theirs late.
enum class Loaded { kNone, kOwn, kForeign };
Loaded LoadedBy(pid_t process, pmi::Kind served);
// By a file's text in the form of /proc/PID/maps.
Loaded LoadedIn(const std::string& maps, pmi::Kind served);

// What to say of kForeign.
std::string ForeignText(pmi::Kind served);

}  // namespace dtrun::mpirun
