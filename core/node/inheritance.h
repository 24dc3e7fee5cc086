// What ranks inherit: the environment under what the plan sets, and the limit of open files.
//
// Any thread; RaiseOpenFiles changes the whole process.
#pragma once

#include <sys/resource.h>

#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/plan/plan.h"
#include "core/pmi/server.h"

namespace dtrun::node {

// The environment of this process, "NAME=value".
std::vector<std::string> OwnEnvironment();

// That of a rank: `base`, and over it the plan's variables and those of its MPI library, which it takes out
// of `mpi`.
std::vector<std::string> EnvironmentOf(const plan::Process& process, pmi::Admission& mpi,
                                       const std::vector<std::string>& base);

// Raises the soft limit of open files as far as allowed: three descriptors per rank and its
// connections to the store. Returns the limit there was, for the ranks.
std::optional<rlim_t> RaiseOpenFiles();

// Whether the hard limit of open files lets this host serve so many ranks; the error has both numbers.
Status AllowsOpenFiles(int ranks);

}  // namespace dtrun::node
