// Decides whether the user or group that owns a file is a stranger to this process: one who could change the
// file while dtrun uses it. Every ownership check uses this rule.
//
// Pure functions of the process's credentials and its user namespace; any thread.
#pragma once

#include <sys/types.h>

namespace dtrun {

// Not strangers: this user, root, and in a user namespace the overflow uid, which the kernel shows for all
// users that the namespace does not map. The host's root is one of these, and in a rootless container it owns
// `/`. `shared`: the file lies in a folder that others may write into, where the overflow uid may belong to
// any user.
bool IsStranger(uid_t owner, bool shared = false);
// The same for groups.
bool IsStrangeGroup(gid_t group);

}  // namespace dtrun
