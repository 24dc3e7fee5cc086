// A communicator is made on all of its ranks or on none: a rank whose backend cannot make it tells the others
// at once, in their backend's key-value space too, and a rank that has made it waits until all have.
//
// Collective, over the communicator's key-value spaces; one call at a time, from any thread.
#pragma once

#include <string>
#include <string_view>

#include "core/comm/communicator.h"

namespace dtrun::comm {

// `mine`: how the backend's comm_create has ended here, with the key-value space `theirs`, or why it is not
// called. `route`: "host" or that of devices, the same word on all ranks. Success when all ranks have made
// it. What the time has ended is not told: the others' time ends too, and they see who is missing.
Status MadeByAll(const Making& making, std::string_view route, dtrun_kv* theirs, Status mine);

// Why a comm_create that is under way is in vain: a rank has failed. Empty while none has.
std::string WhyNotMade(const Making& making, std::string_view route);

}  // namespace dtrun::comm
