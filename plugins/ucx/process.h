// Which process a rank is, and a descriptor that tells when another one has ended.
//
// UCX asks whether a process exists, which one that was killed does until its parent has
// collected it; and asks every few seconds only. Pure but for the system; any thread.
#pragma once

#include <string>

namespace dtrun::ucx_plugin {

// This process among all of all hosts: boot, namespace of process numbers, number, start.
std::string ProcessIdentity();

// A descriptor that is readable once the process has ended; the caller closes it. -1 when it is
// this process, or cannot be watched from here: another host, container, or an old kernel.
int WatchProcess(const std::string& identity);

}  // namespace dtrun::ucx_plugin
