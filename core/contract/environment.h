// dtrun's own environment variables, set for every rank that dtrun starts: one list.
//
// Written by the launching process (core/plan), read by libdtrun (core/comm). A program without DTRUN_RANK
// was not started by dtrun. Constants; any thread.
#pragma once

#include <string>
#include <string_view>

namespace dtrun::contract {

// clang-format off
#define DTRUN_VARIABLES_OF_RANKS(X)                                                                          \
  X(kRank, "DTRUN_RANK")                                                                                     \
  /* Replaces DTRUN_RANK and DTRUN_LOCAL_RANK in a process that starts the ranks of its host itself: the     \
     first of them. A rank is that one plus LOCAL_RANK, which its own launcher sets. */                      \
  X(kFirstRank, "DTRUN_FIRST_RANK")                                                                          \
  X(kWorldSize, "DTRUN_WORLD_SIZE")                                                                          \
  X(kLocalRank, "DTRUN_LOCAL_RANK")                                                                          \
  X(kLocalWorldSize, "DTRUN_LOCAL_WORLD_SIZE")                                                               \
  X(kNodeRank, "DTRUN_NODE_RANK")                                                                            \
  X(kHostCount, "DTRUN_HOST_COUNT")                                                                          \
  X(kHostRanks, "DTRUN_HOST_RANKS")    /* how many ranks each host has: "2(x2),1" */                         \
  X(kJob, "DTRUN_JOB")                 /* job.name */                                                        \
  X(kGeneration, "DTRUN_GENERATION")   /* start of the world, from 0 */                                      \
  X(kStore, "DTRUN_STORE")             /* path of the agent's Unix socket */                                 \
  X(kJobKey, "DTRUN_JOB_KEY")          /* 64 hex digits; never printed */                                    \
  X(kRunDir, "DTRUN_RUN_DIR")          /* absolute */                                                        \
  X(kConsole, "DTRUN_CONSOLE")         /* the user's: "terminal" or "plain" */                               \
  X(kBackend, "DTRUN_BACKEND")         /* name, or "none" */                                                 \
  X(kBackendPath, "DTRUN_BACKEND_PATH")        /* the plugin file, absolute */                               \
  X(kBackendFileId, "DTRUN_BACKEND_FILE_ID")   /* the required one (core/plugin/plugin_file.h), or kAnyFile */   \
  X(kBackendOptions, "DTRUN_BACKEND_OPTIONS")  /* options::ToJson */                                         \
  X(kBackendTimeout, "DTRUN_BACKEND_TIMEOUT")  /* as in TOML: "60s" */                                       \
  X(kTorchBackend, "DTRUN_TORCH_BACKEND")      /* backend.torch, if not "script" */                          \
  /* The backend of device memory, if the job has a separate one; as the four above. */                      \
  X(kDeviceBackend, "DTRUN_DEVICE_BACKEND")                                                                  \
  X(kDeviceBackendPath, "DTRUN_DEVICE_BACKEND_PATH")                                                         \
  X(kDeviceBackendFileId, "DTRUN_DEVICE_BACKEND_FILE_ID")                                                    \
  X(kDeviceBackendOptions, "DTRUN_DEVICE_BACKEND_OPTIONS")                                                   \
  /* Device plugins that the ranks may load: "cuda=/path:other=/path", each followed by '#' and its file's   \
     id if known. */                                                                                         \
  X(kDevices, "DTRUN_DEVICES")                                                                               \
  X(kStaging, "DTRUN_STAGING")         /* backend.staging: "auto" or "off" */                                \
  /* What this host uses to reach other hosts, if dtrun chose it. */                                         \
  X(kInterface, "DTRUN_INTERFACE")     /* name */                                                            \
  X(kAddress, "DTRUN_ADDRESS")         /* numeric */                                                         \
  X(kPortRange, "DTRUN_PORT_RANGE")    /* cluster.port_range, if set: "40000-41000" */                       \
  X(kRecorder, "DTRUN_RECORDER")       /* path of the flight recorder */                                     \
  X(kTrace, "DTRUN_TRACE")             /* trace.size in bytes, if trace.enabled: the rank writes its trace */ \
  X(kLocal, "DTRUN_LOCAL")             /* comm.local: "shm" or "none" */                                     \
  X(kEmulatedHosts, "DTRUN_EMULATED_HOSTS")    /* comm.emulate_hosts */                                      \
  /* Processors that this host's ranks have together, if each rank is bound to some of them: a rank's        \
     affinity mask then does not tell whether the host is oversubscribed. "0": not bound. */                 \
  X(kLocalProcessors, "DTRUN_LOCAL_PROCESSORS")                                                              \
  /* Set by a launcher for a process of several ranks if its program passes each rank's output separately    \
     to the agent (core/process/rank_fifo.h). */                                                             \
  X(kRankOutputs, "DTRUN_RANK_OUTPUTS")                                                                      \
  /* job.isolated_ranks, for processes that an mpirun starts. */                                             \
  X(kIsolatedRanks, "DTRUN_ISOLATED_RANKS")
// clang-format on

#define DTRUN_VARIABLE(constant, name) inline constexpr char constant[] = name;
DTRUN_VARIABLES_OF_RANKS(DTRUN_VARIABLE)
#undef DTRUN_VARIABLE
#define DTRUN_VARIABLE(constant, name) name,
inline constexpr std::string_view kVariablesOfRanks[] = {DTRUN_VARIABLES_OF_RANKS(DTRUN_VARIABLE)};
#undef DTRUN_VARIABLE

inline constexpr char kAnyFile[] = "any";
// Beside the store's socket: passes the recorder's descriptor to ranks that cannot open the path.
inline constexpr char kRecorderSocket[] = "recorder";
// Beside it too: the pipe that carries the trace of a rank of the host.
inline std::string TracePipe(int local_rank) { return "trace-" + std::to_string(local_rank); }

}  // namespace dtrun::contract
