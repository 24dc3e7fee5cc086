// Tries whether the GPUs of this host read each other's memory: what the driver says of each pair,
// and a verified and timed copy.
//
// Touches every visible device and may hang where the answer is no, so it belongs into a child
// process (peer_access.h). The report is text, a line for each fact, flushed before the step that
// it announces:
//
//     none                            no usable device
//     key DRIVER BOOT_ID BUS_ID ...
//     device INDEX BUS_ID
//     cached                          nothing was tried; what follows is what was found earlier
//     opening DEVICE
//     trying FROM TO
//     refused FROM TO REASON          the driver or NVML says no
//     broken FROM TO REASON           claimed, and not so
//     proven FROM TO BYTES_PER_SECOND
//     done
#pragma once

#include <functional>
#include <string>

#include "../cuda/cuda_api.h"

namespace dtrun::nccl_plugin {

// Gets lines without their newline.
using TrialSink = std::function<void(const std::string& line)>;
// The lines that are kept for a key; empty: none.
using TrialMemory = std::function<std::string(const std::string& key)>;

// Throws sdk::Failure when a device cannot be used.
void TryPeers(const cuda::CudaApi& cuda, const TrialMemory& memory, const TrialSink& sink);

}  // namespace dtrun::nccl_plugin
