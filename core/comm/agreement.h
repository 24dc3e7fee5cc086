// What the ranks of a communicator agree on through its key-value spaces: that all have the same libraries,
// that all or none create it, and that all or none connect their devices.
//
// Collective, but for CheckBuilds and CheckCapabilities, which do not wait for others; one call at a time,
// from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/comm/comm_state.h"
#include "core/plugin/host.h"

namespace dtrun::comm {

// `attempt` is the same on all ranks. `mine`: "cuda memory by nccl", or why this rank refuses. A refusal is
// returned here and becomes a DTRUN_REMOTE_FAILURE of this rank on the others. No rank is connected then, and
// all may retry. A mismatch or a missing rank is an error on all ranks. `usable` is polled while this rank
// waits; its error ends the wait.
Status Agree(const Making& making, int attempt, const std::string& device, const Result<std::string>& mine,
             const std::function<Status()>& usable);

// `mine`: the result of the backend's comm_create with the key-value space `theirs`, or why it is not called.
// `route`: "host" or that of devices, the same word on all ranks. A rank that cannot create it notifies the
// others at once, also in `theirs`; one that has created it waits until all have. A timeout is not published:
// the others time out too, and see which rank is missing.
Status MadeByAll(const Making& making, std::string_view route, dtrun_kv* theirs, Status mine);

// Why a running comm_create is pointless: a rank has failed. Empty while none has.
std::string WhyNotMade(const Making& making, std::string_view route);

// Checks that all ranks have the same libdtrun and backend: different versions may not understand each other,
// and then hang or compute nonsense. Each rank compares itself with the first one that published its own.
// `mine`: "libdtrun 0.1.0, gloo 1.2 of ABI 1.0".
Status CheckBuilds(dtrun_kv& kv, int rank, const std::string& mine);

// The same for what the backend can do: rule B15.
Status CheckCapabilities(dtrun_kv& kv, int rank, const std::string& backend, const dtrun_backend_caps& caps);

}  // namespace dtrun::comm
