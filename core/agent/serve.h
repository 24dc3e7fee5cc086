// The agent of a host that is not the root's: joins its root, and carries out what that says
// until the job is over or the root is lost.
#pragma once

#include "core/agent/cluster.h"
#include "core/agent/join_request.h"
#include "core/agent/lifeline.h"

namespace dtrun::agent {

// Reads the request from stdin, whose end then means that nobody wants this agent any more.
// Returns the exit code. REQUIRES: called by the work of Guarded.
int ServeFromStdin(Lifeline& lifeline);

// The same with a request from elsewhere; stdin means nothing.
int Serve(const JoinRequest& request, Lifeline& lifeline);

}  // namespace dtrun::agent
