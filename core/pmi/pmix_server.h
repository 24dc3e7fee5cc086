// PMIx for the ranks of a host, which Open MPI needs to start.
//
// libpmix listens on TCP and crashes on a malformed handshake, so it runs in its own process (dtrun-pmix,
// core/pmi/libpmix), one per generation. This class talks to that process over a socket pair and validates
// its messages against the job. Loop thread.
#pragma once

#include "core/pmi/server.h"

namespace dtrun::pmi {

// `events.lost` is called if that process sends an invalid message, or, with an empty text, if it closes its
// end. The caller that started the process knows how it ended.
std::unique_ptr<Server> MakePmixServer(boost::asio::io_context& loop, Folders folders, Events events,
                                       StartPmix start);

}  // namespace dtrun::pmi
