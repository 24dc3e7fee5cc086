// Starts one process of the job: as fast as vfork, in its own process group, tied to the agent's life.
//
// The child gets default signal dispositions, an empty signal mask, descriptors 0-2 and at most one more
// given by the caller. It gets SIGKILL when the thread that called Spawn ends. REQUIRES: descriptors 0-2 of
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
  std::optional<int> rank;  // for error texts; unset: a helper program, not a rank
  // argv[0] without a slash is looked up in env's PATH; for a helper only in its absolute folders.
  std::vector<std::string> argv;
  std::vector<std::string> env;      // complete, "NAME=value"
  std::string cwd;                   // absolute
  std::string binding;               // CPUs, "0-3,8"; empty: inherited
  int stdin_fd = -1;                 // still owned by the caller; -1: /dev/null
  std::optional<rlim_t> open_files;  // soft RLIMIT_NOFILE of the child; unset: inherited
  int cgroup = -1;  // cgroup folder to start in, still owned by the caller; -1: the caller's cgroup
  bool cgroup_required = false;  // false: it starts outside the cgroup if the kernel refuses
  bool adopts = false;           // it is a child subreaper for its descendants
  int extra_fd = -1;             // becomes the child's kExtraDescriptor; still owned by the caller; -1: none
  std::string option = "job.command";  // the option that names argv[0], for error texts
};

inline constexpr int kExtraDescriptor = 3;

struct Child {
  pid_t pid = 0;
  UniqueFd handle;    // pidfd: readable once the process has ended
  UniqueFd out, err;  // its stdout and stderr; non-blocking
};

// Returns once the new program runs. Errors name the rank, the cause and the next step.
Result<Child> Spawn(const SpawnRequest& request);

}  // namespace dtrun::process
