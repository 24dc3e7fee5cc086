// PMI-1 for the ranks of a host. Over a socket pair per rank, MPICH and its derivatives query their rank and
// put, get and exchange keys.
//
// Answers all requests of core/pmi/pmi1_wire.h; rejects spawn and name publishing. Loop thread.
#pragma once

#include "core/pmi/server.h"

namespace dtrun::pmi {

std::unique_ptr<Server> MakePmi1Server(boost::asio::io_context& loop, Events events);

// "(vector,(0,2,4))": hosts 0 and 1 with 4 ranks each. MPICH derives from it which ranks share memory.
std::string ProcessMapping(const std::vector<JobHost>& hosts);

}  // namespace dtrun::pmi
