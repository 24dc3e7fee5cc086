// Which process management interface an MPI library finds in a rank, so that MPI_Init works
// without mpirun. Values; any thread.
#pragma once

#include <cstdint>

#include "core/base/result.h"

namespace dtrun::pmi {

enum class Kind : std::uint8_t {
  kNone,
  kPmix,  // PMIx: Open MPI
  kPmi1,  // PMI-1: MPICH, Intel MPI, MVAPICH
};

// "none", "pmix", "pmi1": the words of job.pmi.
const char* KindName(Kind kind);

// Whether this dtrun was built to serve it; the error says what is missing.
Status Servable(Kind kind);
// Whether this host can serve it too: its library is there and fits.
Status ServableHere(Kind kind);

}  // namespace dtrun::pmi
