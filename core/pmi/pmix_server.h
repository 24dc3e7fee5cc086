// PMIx for the ranks of a host, through libpmix: what Open MPI starts with.
//
// One at a time in a process, because libpmix has no more. Loop thread; libpmix's own thread hands
// over to the loop.
#pragma once

#include "core/pmi/server.h"

namespace dtrun::pmi {

// An error when this dtrun was built without it.
Status PmixBuilt();
// An error when libpmix is not here, or is not the one that is needed.
Status PmixOpens();

Result<std::unique_ptr<Server>> MakePmixServer(const Job& job, boost::asio::io_context& loop,
                                               const Folders& folders, Events events);

}  // namespace dtrun::pmi
