// A descriptor that an agent gives to its ranks through a Unix socket. It reaches a rank in user and PID
// namespaces of its own, where /proc/PID/fd does not.
//
// Send: the agent's loop thread, never blocks. Receive: any thread, waits for the agent.
#pragma once

#include <filesystem>

#include "core/base/fd.h"
#include "core/base/result.h"

namespace dtrun::store {

// Lost where the other end has gone.
void SendDescriptor(int socket, int descriptor);

// Connects to `socket` as to the store's and takes what is sent there.
Result<UniqueFd> ReceiveDescriptor(const std::filesystem::path& socket);

}  // namespace dtrun::store
