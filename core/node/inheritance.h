// What ranks inherit: the environment that the plan's variables override, and the open-file limit.
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

// The same, without the variables that the plan removes for ranks.
std::vector<std::string> InheritedBy(const plan::Plan& plan);

// The environment of a rank: `base`, overridden by the plan's variables and by those of its MPI library,
// which are taken from `mpi`.
std::vector<std::string> EnvironmentOf(const plan::Process& process, pmi::Admission& mpi,
                                       const std::vector<std::string>& base);

// Raises the soft open-file limit as far as allowed: each rank needs three descriptors plus its connections
// to the store. Returns the previous limit, for the ranks.
std::optional<rlim_t> RaiseOpenFiles();

// Whether the hard open-file limit lets this host serve `ranks` ranks; the error has both numbers.
Status AllowsOpenFiles(int ranks);

}  // namespace dtrun::node
