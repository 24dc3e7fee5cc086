// Whether UCX may let GPUs of a host read each other's memory: its transport cuda_ipc, as an option.
//
// This backend moves host memory and never needs it; programs that use UCX themselves do, and ask
// peers that cannot (error 217). Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "resources.h"

namespace dtrun::ucx_plugin {

struct PeerChoice {
  std::optional<std::string> transports;  // UCX_TLS with it; unset: nothing to say
  std::string fact;                       // for the run header; empty: nothing is known
  std::string for_programs;               // DTRUN_P2P: "on", "off", or empty
};

// `p2p` is an index of the option's choices; `transports` the user's list, `inherited` the value of
// DTRUN_P2P. Throws sdk::Failure when p2p and transports contradict each other, and when it is to be
// on where UCX has no cuda_ipc.
PeerChoice ChoosePeers(int p2p, const std::optional<std::string>& transports,
                       const std::optional<std::string>& inherited, const std::vector<Resource>& all);

}  // namespace dtrun::ucx_plugin
