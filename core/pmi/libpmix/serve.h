// The PMIx server of a host, in a process that is made for it: libpmix on one side, the agent on the other.
//
// That process is the only one with libpmix, which may die of what it is sent. It trusts its agent and exits
// when that closes the connection. Main thread; libpmix's own thread hands over to it.
#pragma once

#include "core/base/fd.h"
#include "core/base/result.h"

namespace dtrun::pmi {

// Serves one generation, in the messages of core/pmi/pmix_wire.h. Returns never.
void ServePmix(UniqueFd agent);

// Whether libpmix is here and fits.
Status CheckPmix();

}  // namespace dtrun::pmi
