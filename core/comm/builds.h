// Checks that all ranks of a world have the same libdtrun and backend. Different versions may not understand
// each other, and then hang or compute nonsense.
//
// Does not block: each rank compares itself with the first one that published its versions. Any thread.
#pragma once

#include <string>

#include "core/plugin/host.h"

namespace dtrun::comm {

// `mine`: "libdtrun 0.1.0, gloo 1.2 of ABI 0.9".
Status CheckBuilds(dtrun_kv& kv, int rank, const std::string& mine);

}  // namespace dtrun::comm
