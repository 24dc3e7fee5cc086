// The identity of a process started by mpirun: reads the variables of Open MPI or Hydra, checks them against
// the plan, and converts them to rank variables.
//
// On a mismatch of the program's MPI and the mpirun that started it, each rank forms a world of one and
// succeeds: a wrong result without an error.
//
// Any thread.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/pmi/kind.h"

namespace dtrun::mpirun {

// A variable's value, or null.
using Lookup = std::function<const char*(const char* name)>;

// A process in the MPI world.
struct Identity {
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;
  // The interface that its mpirun serves: PMIx for Open MPI, PMI-1 for Hydra.
  pmi::Kind served = pmi::Kind::kPmix;
};

// Errors name a missing or non-numeric variable.
Result<Identity> ReadIdentity(const Lookup& lookup);

// The variables of a rank besides those of its host: DTRUN_RANK, RANK and so on. An error if mpirun's world
// or rank placement differs from the plan.
Result<std::map<std::string, std::string>> RankVariables(const Identity& identity, const Lookup& lookup);

// For one MPI process per host, where the program creates the ranks: checks that it is on the right host.
Status CheckHostProcess(const Identity& identity, const Lookup& lookup);

// The file that execvp would start for `program`, as process::FindProgram finds it from here.
Result<std::string> FindHere(const std::string& program);

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
