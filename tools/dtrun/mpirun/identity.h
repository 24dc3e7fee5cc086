// The identity of a process started by mpirun: reads the variables of Open MPI or Hydra, checks them against
// the plan, and converts them to rank variables.
//
// Pure; any thread.
#pragma once

#include <functional>
#include <map>
#include <string>

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

}  // namespace dtrun::mpirun
