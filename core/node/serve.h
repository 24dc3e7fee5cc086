// The agent of a host that is not the root's: joins its root, and carries out what that says
// until the job is over or the root is lost.
#pragma once

#include "core/process/lifeline.h"
#include "core/protocol/join_request.h"

namespace dtrun::node {

// Reads the request from stdin, whose end then means that nobody wants this agent any more.
// Returns the exit code. REQUIRES: called by the work of Guarded.
int ServeFromStdin(process::Lifeline& lifeline);

// The same with a request from elsewhere; stdin means nothing.
int Serve(const protocol::JoinRequest& request, process::Lifeline& lifeline);

}  // namespace dtrun::node
