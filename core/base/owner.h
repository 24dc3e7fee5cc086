// Whom a user or group that owns a file is to this process: whether it counts as a stranger, who could change
// the file under dtrun. The one rule for every check of owners.
//
// Pure functions of the process' credentials and its user namespace; any thread.
#pragma once

#include <sys/types.h>

namespace dtrun {

// Not a stranger: this user, root, and in a user namespace the number that the kernel shows for all users which
// the namespace lacks. The host's root is one of these, and in a rootless container owns `/`. `shared`: the
// file lies in a folder that others may write into, where such a number may as well be any user's.
bool IsStranger(uid_t owner, bool shared = false);
// The same for groups.
bool IsStrangeGroup(gid_t group);

}  // namespace dtrun
