// Passes a file descriptor from an agent to its ranks through a Unix socket. This also works for a rank in
// its own user and PID namespaces, where /proc/PID/fd does not.
//
// Send: the agent's loop thread, never blocks. Receive: any thread, blocks until the agent sends.
#pragma once

#include <filesystem>

#include "core/base/fd.h"
#include "core/base/result.h"

namespace dtrun::store {

// Ignores a peer that is gone.
void SendDescriptor(int socket, int descriptor);

// Connects to `socket`, as for the store, and receives the descriptor.
Result<UniqueFd> ReceiveDescriptor(const std::filesystem::path& socket);

}  // namespace dtrun::store
