// What an MPI library finds in the ranks of a plan: whether they are served PMIx or PMI-1, and the
// variables that say so.
//
// A step of Build (core/plan/build.h), after the processes have their programs.
#pragma once

#include "core/plan/build.h"

namespace dtrun::plan {

// An error has the place of the option that caused it.
Status ServePmi(const Inputs& inputs, Plan* plan);

}  // namespace dtrun::plan
