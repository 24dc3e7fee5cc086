// What an MPI library finds in the ranks of a plan: whether they are served PMIx or PMI-1, and the
// variables that say so.
//
// A step of Build (core/plan/build.h), after the processes have their programs. No state; any thread.
#pragma once

#include "core/plan/build.h"

namespace dtrun::plan {

// An error has the place of the option that caused it.
Status ServePmi(const Inputs& inputs, Plan* plan);

// What MPI libraries are to find in ranks that run `program` with `backend`: job.pmi, or what those need.
pmi::Kind WantedPmi(const config::Settings& settings, const std::string& backend, int host_count,
                    int world_size, const std::string& program);

// Why the ranks of `backend` could not meet though its library is there: MPI needs somebody who serves
// it. Empty: they can, or the backend carries nothing.
std::string WhyNotServed(const config::Settings& settings, const std::string& backend, int host_count,
                         int world_size);

}  // namespace dtrun::plan
