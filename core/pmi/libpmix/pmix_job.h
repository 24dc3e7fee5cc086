// Describes a job to PMIx. Loop thread; built only if PMIx's headers are available.
#pragma once

#include "core/pmi/libpmix/pmix_library.h"
#include "core/pmi/server.h"

namespace dtrun::pmi {

// Adds the keys that Open MPI 4 and 5 read, and those that the standard requires of every server. REQUIRES:
// the server was started.
Status DescribeJob(const PmixLibrary& library, const Job& job, const Folders& folders, PmixInfo* info);

}  // namespace dtrun::pmi
