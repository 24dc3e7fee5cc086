// Variables that the user may have set in vain. Of the name DTRUN_...: misspelt, or for ranks alone. (A
// misspelt DTRUN_CONFIG_... is an error: core/config.)
//
// Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "core/environments/dialect.h"

namespace dtrun::plan {

// A note for each of them in `environment`; `options`: the variables of the options, DTRUN_CONFIG_...; `plugins`: the
// names of those that DTRUN_LOG may name.
std::vector<std::string> IgnoredVariables(const environments::Variables& environment,
                                          const std::vector<std::string>& options,
                                          const std::vector<std::string>& plugins);

// What to tell one who has exported MASTER_PORT for rank 0, which gets another; empty, when it is an outer
// launcher's, or the job's own. `user`: the variables of job.env.
std::string UnusedMasterPort(const environments::Variables& environment, const environments::Variables& user);

// What to tell one who has asked Slurm for another order of ranks (-m cyclic, plane) than dtrun's, which fills
// each host in turn; empty: the order is the same. `ranks`: of each host.
std::string UnusedDistribution(const environments::Variables& environment, const std::vector<int>& ranks);

}  // namespace dtrun::plan
