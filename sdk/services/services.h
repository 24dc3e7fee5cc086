// The services of dtrun/abi/services.h, for any host: they use the SDK and the host's own
// "dtrun.kv/1" and "dtrun.memory/1". Constant tables that live as long as the process; any thread.
#pragma once

#include "dtrun/abi/services.h"

namespace dtrun::services {

const dtrun_kernels_service* Kernels();
const dtrun_collectives_service* Collectives();
const dtrun_calls_service* Calls();
const dtrun_membership_service* Memberships();

// The table for `id`, or null; `id` is not null.
const void* Find(const char* id);

}  // namespace dtrun::services
