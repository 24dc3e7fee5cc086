// dtrun's own environment variables, set for every rank that dtrun starts.
//
// Written by the launching process (core/plan), read by libdtrun (core/comm). A program without DTRUN_RANK
// was not started by dtrun. Constants and stateless functions; any thread.
#pragma once

namespace dtrun::contract {

inline constexpr char kRank[] = "DTRUN_RANK";
// Replaces DTRUN_RANK and DTRUN_LOCAL_RANK in a process that starts the ranks of its host itself: the first
// of them. A rank is that one plus LOCAL_RANK, which its own launcher sets.
inline constexpr char kFirstRank[] = "DTRUN_FIRST_RANK";
inline constexpr char kWorldSize[] = "DTRUN_WORLD_SIZE";
inline constexpr char kLocalRank[] = "DTRUN_LOCAL_RANK";
inline constexpr char kLocalWorldSize[] = "DTRUN_LOCAL_WORLD_SIZE";
inline constexpr char kNodeRank[] = "DTRUN_NODE_RANK";
inline constexpr char kHostCount[] = "DTRUN_HOST_COUNT";
inline constexpr char kHostRanks[] = "DTRUN_HOST_RANKS";      // how many ranks each host has: "2(x2),1"
inline constexpr char kJob[] = "DTRUN_JOB";                   // job.name
inline constexpr char kGeneration[] = "DTRUN_GENERATION";     // start of the world, from 0
inline constexpr char kStore[] = "DTRUN_STORE";               // path of the agent's Unix socket
inline constexpr char kJobKey[] = "DTRUN_JOB_KEY";            // 64 hex digits; never printed
inline constexpr char kRunDir[] = "DTRUN_RUN_DIR";            // absolute
inline constexpr char kConsole[] = "DTRUN_CONSOLE";           // the user's: "terminal" or "plain"
inline constexpr char kBackend[] = "DTRUN_BACKEND";           // name, or "none"
inline constexpr char kBackendPath[] = "DTRUN_BACKEND_PATH";  // the plugin file, absolute
inline constexpr char kBackendFileId[] =
    "DTRUN_BACKEND_FILE_ID";  // the required one (core/plugin/file_id.h), or kAnyFile
inline constexpr char kAnyFile[] = "any";
inline constexpr char kBackendOptions[] = "DTRUN_BACKEND_OPTIONS";  // options::ToJson
inline constexpr char kBackendTimeout[] = "DTRUN_BACKEND_TIMEOUT";  // as in TOML: "60s"
inline constexpr char kTorchBackend[] = "DTRUN_TORCH_BACKEND";      // backend.torch, if not "script"

// The backend of device memory, if the job has a separate one; as the four above.
inline constexpr char kDeviceBackend[] = "DTRUN_DEVICE_BACKEND";
inline constexpr char kDeviceBackendPath[] = "DTRUN_DEVICE_BACKEND_PATH";
inline constexpr char kDeviceBackendFileId[] = "DTRUN_DEVICE_BACKEND_FILE_ID";
inline constexpr char kDeviceBackendOptions[] = "DTRUN_DEVICE_BACKEND_OPTIONS";
// Device plugins that the ranks may load: "cuda=/path:other=/path", each followed by '#' and its file's id if
// known.
inline constexpr char kDevices[] = "DTRUN_DEVICES";
inline constexpr char kStaging[] = "DTRUN_STAGING";  // backend.staging: "auto" or "off"

// What this host uses to reach other hosts, if dtrun chose it.
inline constexpr char kInterface[] = "DTRUN_INTERFACE";  // name
inline constexpr char kAddress[] = "DTRUN_ADDRESS";      // numeric
inline constexpr char kPortRange[] = "DTRUN_PORT_RANGE";  // cluster.port_range, if set: "40000-41000"

inline constexpr char kRecorder[] = "DTRUN_RECORDER";             // path of the flight recorder
// Beside the store's socket: passes the recorder's descriptor to ranks that cannot open the path.
inline constexpr char kRecorderSocket[] = "recorder";
inline constexpr char kLocal[] = "DTRUN_LOCAL";                   // comm.local: "shm" or "none"
inline constexpr char kEmulatedHosts[] = "DTRUN_EMULATED_HOSTS";  // comm.emulate_hosts

// Processors that this host's ranks have together, if each rank is bound to some of them: a rank's affinity
// mask then does not tell whether the host is oversubscribed. "0": not bound.
inline constexpr char kLocalProcessors[] = "DTRUN_LOCAL_PROCESSORS";

// Set by a launcher for a process of several ranks if its program passes each rank's output separately to the
// agent (core/process/rank_fifo.h).
inline constexpr char kRankOutputs[] = "DTRUN_RANK_OUTPUTS";

// job.isolated_ranks, for processes that an mpirun starts.
inline constexpr char kIsolatedRanks[] = "DTRUN_ISOLATED_RANKS";

}  // namespace dtrun::contract
