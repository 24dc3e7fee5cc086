// Restricts the system calls of dtrun-pmix, which parses untrusted input. It may use files, sockets, threads
// and memory. It may not start programs, affect other processes, gain privileges or use rare kernel
// interfaces.
//
// Called once, before other threads exist.
#pragma once

#include "core/base/result.h"

namespace dtrun::pmi {

// Sets no_new_privs and a seccomp filter for this process and its children. Calls outside the filter's list
// fail with ENOSYS, for which C libraries fall back to older calls. Returns an error if the kernel, emulator
// or container does not support filters: the process then remains unrestricted. Sanitizer builds get no
// filter, because sanitizers trace their own process.
Status Confine();

}  // namespace dtrun::pmi
