// The process between dtrun and the process that loads a plugin. It is a subreaper: whatever the plugin
// starts, even in another session, is reparented to it and ends with it.
//
// Main thread of the probe, before it has loaded anything.
#pragma once

#include "core/base/result.h"

namespace dtrun::plugin {

// Of a probe that ran out of memory where it could not answer any more: EX_OSERR.
inline constexpr int kExitOutOfMemory = 71;

// Forks. Returns in the child, which loads the plugin and dies with its parent; where there can be no child,
// it returns the error. The parent ends as the child does, by its exit code or its signal, stops when it
// stops, and ends the child at SIGTERM; before it ends it kills all that is left below it. `socket` is the
// child's alone.
Status KeepProbe(int socket);

}  // namespace dtrun::plugin
