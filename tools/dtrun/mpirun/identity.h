// Who a process is that mpirun has started: its variables, as an Open MPI or a Hydra sets them,
// checked against the plan and turned into those of a rank.
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

// A process of the MPI world.
struct Identity {
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;
  // What the mpirun that has started it serves: PMIx is Open MPI's, PMI-1 a Hydra's.
  pmi::Kind served = pmi::Kind::kPmix;
};

// Errors say what is missing or no number.
Result<Identity> ReadIdentity(const Lookup& lookup);

// What a rank of the job finds besides what its host has: DTRUN_RANK, RANK and their like. An
// error when mpirun has made another world, or placed other ranks here, than the plan says.
Result<std::map<std::string, std::string>> RankVariables(const Identity& identity, const Lookup& lookup);

// For one MPI process per host, whose program makes the ranks: that it is the one of this host.
Status CheckHostProcess(const Identity& identity, const Lookup& lookup);

}  // namespace dtrun::mpirun
