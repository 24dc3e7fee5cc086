// Variables of an outer launcher that would give a rank a wrong identity. They are not passed on to ranks.
//
// A rank that sees OMPI_COMM_WORLD_RANK of an outer mpirun, or SLURM_NTASKS of its allocation, forms the
// wrong world. Settings (OMPI_MCA_btl…, NCCL_*, SLURM_JOB_ID, AZUREML_*) are passed on. Variables set by the
// launcher, a dialect or job.env are added afterwards. Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/environments/dialect.h"

namespace dtrun::environments {

// Names that ranks do not inherit; a trailing "*" matches any suffix.
const std::vector<std::string>& Withheld();

bool MatchesAny(std::string_view name, const std::vector<std::string>& patterns);

// Lines for the run header: which of these variables are set, which launcher set them, and what dtrun does
// instead.
std::vector<std::string> OuterNotes(const Variables& environment);

// Advice if an outer launcher has started this command several times, each with its own job; otherwise empty.
std::string OneOfSeveral(const Variables& environment);

// For a job on one host: advice if this is the shell or batch script of a Slurm allocation of several hosts;
// otherwise empty.
std::string UnusedAllocation(const Variables& environment);

}  // namespace dtrun::environments
