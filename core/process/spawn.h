// Starts one process of the job: as fast as vfork, in its own process group, tied to the
// life of the agent.
//
// The child gets default signal dispositions and an empty mask, descriptors 0-2 and no other but
// the one that it is given, and SIGKILL when the thread that called Spawn ends. REQUIRES: descriptors 0-2 of
// this process are open. Call from the agent's loop thread.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "core/base/fd.h"
#include "core/base/result.h"

namespace dtrun::process {

struct SpawnRequest {
  int rank = 0;                      // for error texts; -1: it is no rank
  // argv[0] without a slash is looked up in env's PATH; if it is no rank, in the absolute folders of that.
  std::vector<std::string> argv;
  std::vector<std::string> env;      // the whole block, "NAME=value"
  std::string cwd;                   // absolute
  std::string binding;               // CPUs, "0-3,8"; empty: inherited
  int stdin_fd = -1;                 // stays the caller's; -1: /dev/null
  std::optional<rlim_t> open_files;  // soft RLIMIT_NOFILE of the child; unset: inherited
  int cgroup = -1;               // folder of the cgroup to start in; stays the caller's; -1: the caller's own
  bool cgroup_required = false;  // else it starts without, where the kernel refuses it
  bool adopts = false;           // what its descendants leave behind stays below it while it lives
  int extra_fd = -1;             // the child's kExtraDescriptor; stays the caller's; -1: none
  std::string option = "job.command";  // that names argv[0], for error texts
};

inline constexpr int kExtraDescriptor = 3;

struct Child {
  pid_t pid = 0;
  UniqueFd handle;    // pidfd: readable when the process has ended
  UniqueFd out, err;  // what it prints; non-blocking
};

// Returns when the new program runs. Errors name the rank, the cause and the next step.
Result<Child> Spawn(const SpawnRequest& request);

}  // namespace dtrun::process
