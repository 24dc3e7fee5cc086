// Chooses the PMI service for MPI libraries in the ranks, PMIx or PMI-1, and sets its variables.
//
// A step of Build (core/plan/build.h), after the processes have their programs. No state; any thread.
#pragma once

#include "core/plan/build.h"

namespace dtrun::plan {

// Errors have the place of the option that caused them.
Status ServePmi(const Inputs& inputs, Plan* plan);

// The PMI service for ranks that run `program` with `backend`: job.pmi, or the one that they need.
pmi::Kind WantedPmi(const spec::JobSpec& spec, const std::string& backend, int host_count, int world_size,
                    const std::string& program);

// Why the ranks of `backend` could not connect although its library is installed: MPI needs a PMI server.
// Empty: they can, or the backend is unused.
std::string WhyNotServed(const spec::JobSpec& spec, const std::string& backend, int host_count,
                         int world_size);

}  // namespace dtrun::plan
