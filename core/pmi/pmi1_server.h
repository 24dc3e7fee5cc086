// PMI-1 for the ranks of a host: a socket pair for each, over which MPICH and its kin ask who they
// are and put, get and exchange keys.
//
// What it answers is the whole of core/pmi/pmi1_wire.h but spawn and the publishing of names, which
// are refused. Loop thread.
#pragma once

#include "core/pmi/server.h"

namespace dtrun::pmi {

std::unique_ptr<Server> MakePmi1Server(boost::asio::io_context& loop, Events events);

// "(vector,(0,2,4))": hosts 0 and 1 with 4 ranks each. MPICH takes from it who shares memory.
std::string ProcessMapping(const std::vector<JobHost>& hosts);

}  // namespace dtrun::pmi
