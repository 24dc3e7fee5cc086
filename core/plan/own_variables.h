// Warns about variables that the user may have set in vain: DTRUN_... names that are misspelt or have meaning
// only in ranks. (A misspelt DTRUN_CONFIG_... is an error: core/config.)
//
// Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "core/environments/dialect.h"

namespace dtrun::plan {

// A note for each such variable in `environment`. `options`: the DTRUN_CONFIG_... variables of the options.
// `plugins`: plugin names that DTRUN_LOG may use.
std::vector<std::string> IgnoredVariables(const environments::Variables& environment,
                                          const std::vector<std::string>& options,
                                          const std::vector<std::string>& plugins);

// A note if the user has exported MASTER_PORT for rank 0 and dtrun uses another port; empty if an outer
// launcher or the job set it. `user`: the variables of job.env.
std::string UnusedMasterPort(const environments::Variables& environment, const environments::Variables& user);

// A note if Slurm was asked for another order of ranks (-m cyclic, plane) than dtrun's, which fills each host
// in turn; empty if the order is the same. `ranks`: by host.
std::string UnusedDistribution(const environments::Variables& environment, const std::vector<int>& ranks);

}  // namespace dtrun::plan
