// The agent of a host other than the root's: joins its root and follows its commands until the job is over or
// the root is lost. Owns its loop; runs on the agent's main thread.
#pragma once

#include <optional>

#include "core/node/user_report.h"
#include "core/process/lifeline.h"
#include "core/protocol/join_request.h"

namespace dtrun::node {

// Reads the request from stdin. The end of stdin then means that this agent is no longer needed. Returns the
// exit code. REQUIRES: called by the work of Guarded.
int ServeFromStdin(process::Lifeline& lifeline);

// The same with a request from this host's user; stdin has no meaning. The user gets a report of events here,
// but only of problems if `own` is not set.
int Serve(const protocol::JoinRequest& request, std::optional<OwnStart> own, process::Lifeline& lifeline);

}  // namespace dtrun::node
