// The agent of a host that is not the root's: joins its root, and carries out what that says
// until the job is over or the root is lost. Owns its loop; the main thread of the agent.
#pragma once

#include <optional>

#include "core/node/user_report.h"
#include "core/process/lifeline.h"
#include "core/protocol/join_request.h"

namespace dtrun::node {

// Reads the request from stdin, whose end then means that nobody wants this agent any more.
// Returns the exit code. REQUIRES: called by the work of Guarded.
int ServeFromStdin(process::Lifeline& lifeline);

// The same with a request of this host's user; stdin means nothing. The user is told what happens here, but
// for trouble only if `own` is not set.
int Serve(const protocol::JoinRequest& request, std::optional<OwnStart> own, process::Lifeline& lifeline);

}  // namespace dtrun::node
