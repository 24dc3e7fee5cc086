// The backend of a world of one: every operation is a local copy that is done at once.
//
// For programs that dtrun did not start. Needs no plugin, store or peer. A constant table; any thread.
#pragma once

#include "dtrun/abi/backend.h"

namespace dtrun::comm {

// The table; `self` of its members is null.
const dtrun_backend& SelfBackend();

}  // namespace dtrun::comm
