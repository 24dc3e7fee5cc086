// Creates a communicator on all of its ranks or on none. A rank that cannot create it notifies the others at
// once, also in their backend's key-value space. A rank that has created it waits until all have.
//
// Collective, over the communicator's key-value spaces; one call at a time, from any thread.
#pragma once

#include <string>
#include <string_view>

#include "core/comm/communicator.h"

namespace dtrun::comm {

// `mine`: the result of the backend's comm_create with the key-value space `theirs`, or why it is not called.
// `route`: "host" or that of devices, the same word on all ranks. Succeeds when all ranks have created it. A
// timeout is not published: the others time out too, and see which rank is missing.
Status MadeByAll(const Making& making, std::string_view route, dtrun_kv* theirs, Status mine);

// Why a running comm_create is pointless: a rank has failed. Empty while none has.
std::string WhyNotMade(const Making& making, std::string_view route);

}  // namespace dtrun::comm
