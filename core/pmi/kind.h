// The process management interfaces that MPI libraries look for in a rank, so that MPI_Init works without
// mpirun. Values; any thread.
#pragma once

#include <cstdint>

#include "core/base/result.h"

namespace dtrun::pmi {

enum class Kind : std::uint8_t {
  kNone,
  kPmix,  // PMIx: Open MPI
  kPmi1,  // PMI-1: MPICH, Intel MPI, MVAPICH
};

// "none", "pmix", "pmi1": as in job.pmi.
const char* KindName(Kind kind);

// Whether this dtrun was built with support for it. The error names what is missing.
Status Servable(Kind kind);
// Whether this host can also serve it: the library exists and is compatible.
Status ServableHere(Kind kind);

}  // namespace dtrun::pmi
