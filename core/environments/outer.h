// What an outer launcher left in the environment: variables that would tell a rank that
// it is somebody else, and are therefore not passed on.
//
// A rank of ours that finds OMPI_COMM_WORLD_RANK of an outer mpirun, or the SLURM_NTASKS of
// the allocation it runs in, forms the wrong world. Settings (OMPI_MCA_btl…, NCCL_*,
// SLURM_JOB_ID, AZUREML_*) are passed on. What the launcher, a dialect or job.env sets for
// a rank comes after this. Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/environments/dialect.h"

namespace dtrun::environments {

// Names that ranks do not inherit; a "*" at the end stands for any rest.
const std::vector<std::string>& Withheld();

bool MatchesAny(std::string_view name, const std::vector<std::string>& patterns);

// Lines for the run header: which of them there are, whose, and what happens instead.
std::vector<std::string> OuterNotes(const Variables& environment);

// What to do where an outer launcher has started several of this command, each with a job of its own; empty
// where it has not.
std::string OneOfSeveral(const Variables& environment);

}  // namespace dtrun::environments
