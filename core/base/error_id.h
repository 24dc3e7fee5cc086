// The ids of errors: what happened, as a name that programs and tests compare.
//
// An id and the names of its arguments are stable; texts are not. An Error without an id says no more than
// its status. A room that needs an id adds a line. Constants; any thread.
#pragma once

#include <cstdint>

namespace dtrun {

// clang-format off
#define DTRUN_ERROR_IDS(X)                                                                                   \
  /* An operation, or the making of a communicator, did not end in time; call, communicator. */             \
  X(kTimeout, "comm.timeout")                                                                                \
  /* Another rank failed, left or gave up; call, communicator. */                                            \
  X(kPeerFailed, "comm.peer_failed")                                                                         \
  /* Ranks did not make a call that every member makes; call, communicator. */                               \
  X(kAbsent, "comm.absent")                                                                                  \
  /* Ranks made different calls; communicator, difference. */                                                \
  X(kCallsDiffer, "comm.calls_differ")                                                                       \
  /* A rank aborted the communicator; communicator. */                                                       \
  X(kAborted, "comm.aborted")                                                                                \
  /* The backend neither ended an operation in time nor gave up; plugin. */                                  \
  X(kOverrun, "comm.overrun")                                                                                \
  /* The ranks have libraries of different versions. */                                                      \
  X(kVersionsDiffer, "comm.versions_differ")                                                                 \
  /* A plugin blocked or ended the process; plugin. */                                                       \
  X(kPluginStuck, "plugin.stuck")                                                                            \
  /* A plugin's code threw an exception, or a fault in it, such as SIGSEGV, ended the process; plugin. */     \
  X(kPluginFault, "plugin.fault")                                                                            \
  /* A plugin's file is not the one that dtrun examined before the job. */                                   \
  X(kPluginReplaced, "plugin.replaced")
// clang-format on

enum class ErrorId : std::uint16_t {
  kNone,
#define DTRUN_ERROR_ID(name, text) name,
  DTRUN_ERROR_IDS(DTRUN_ERROR_ID)
#undef DTRUN_ERROR_ID
};

}  // namespace dtrun
