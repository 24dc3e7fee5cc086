// The PMIx server of a host, in its own process between libpmix and the agent.
//
// Only this process loads libpmix, which malformed input can crash. It trusts its agent and exits when the
// agent closes the connection. Main thread; libpmix's own thread posts to it.
#pragma once

#include "core/base/fd.h"
#include "core/base/result.h"

namespace dtrun::pmi {

// Serves one generation over the messages of core/pmi/pmix_wire.h. Never returns.
void ServePmix(UniqueFd agent);

// Whether libpmix is installed and compatible.
Status CheckPmix();

}  // namespace dtrun::pmi
