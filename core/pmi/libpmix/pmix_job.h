// A job in the words of PMIx. Loop thread; only built where PMIx's headers are.
#pragma once

#include "core/pmi/libpmix/pmix_library.h"
#include "core/pmi/server.h"

namespace dtrun::pmi {

// Adds the keys that Open MPI 4 and 5 ask for, and those that the standard asks of every server.
// REQUIRES: the server was started.
Status DescribeJob(const PmixLibrary& library, const Job& job, const Folders& folders, PmixInfo* info);

}  // namespace dtrun::pmi
