// PMIx for the ranks of a host: what Open MPI starts with.
//
// libpmix is not in this process. It listens on TCP and dies of a malformed handshake, so it runs in one of
// its own (dtrun-pmix, core/pmi/libpmix), made anew for each generation, and this talks to that over a socket
// pair. What comes from there is checked against the job. Loop thread.
#pragma once

#include "core/pmi/server.h"

namespace dtrun::pmi {

// `events.lost` tells when that process has said what it cannot mean, or, with no words, has closed its end:
// whoever started it knows how it ended.
std::unique_ptr<Server> MakePmixServer(boost::asio::io_context& loop, Folders folders, Events events,
                                       StartPmix start);

}  // namespace dtrun::pmi
