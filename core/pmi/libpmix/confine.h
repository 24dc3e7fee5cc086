// What dtrun-pmix, which parses what strangers and ranks send, may ask the kernel for: files, sockets,
// threads, memory. No program, no other process, no privilege, none of the kernel's rarer interfaces.
//
// Called once, before there are threads.
#pragma once

#include "core/base/result.h"

namespace dtrun::pmi {

// Sets no_new_privs and a seccomp filter for this process and what it starts. Calls that are not on the
// filter's list fail with ENOSYS, for which C libraries have older calls to fall back to. An error where the
// kernel, an emulator or a container has no filters: the process is then as free as before. Sanitizers, which
// trace their own process, get none.
Status Confine();

}  // namespace dtrun::pmi
