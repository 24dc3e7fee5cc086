// The end of a cluster: agents are told that it is over, and leave.
//
// The root's loop thread, which runs the loop for as long as that takes, two seconds at most.
#pragma once

#include <string>
#include <vector>

#include "core/agent/asio.h"
#include "core/agent/remote_host.h"

namespace dtrun::agent {

// Lets the agents go, and waits a moment for their shells. Null hosts are passed over.
void Dismiss(boost::asio::io_context& loop, const std::vector<RemoteHost*>& hosts, int exit_code,
             const std::string& why);

}  // namespace dtrun::agent
