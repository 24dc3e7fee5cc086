// The plan of a job: every process that will be started, to the byte.
//
// Build makes it once from the spec, `dtrun plan` prints it, the agent executes it, and the run
// directory stores it. A value known only during a run (a port, the run directory, the job key)
// appears as a token such as "⟦master_port⟧"; Resolve replaces tokens and nothing else. Values; any
// thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/process_variables.h"
#include "core/base/result.h"
#include "core/output/style.h"
#include "core/pmi/kind.h"
#include "core/wire/limits.h"

namespace dtrun::plan {

// Prefix of backend facts about one pair of devices of a host: "peer 0>1" is device 1 reading device 0.
inline constexpr char kPeerFact[] = "peer ";
// "agree NAME", with a value: ranks must agree on this variable, so one host's value applies to all.
inline constexpr char kAgreeFact[] = "agree ";
// "by TOPIC": the backend option keys and variable names that decide the topic, separated by spaces.
inline constexpr char kByFact[] = "by ";

struct Host {
  std::string name;
  int first_rank = 0;
  int local_size = 0;
  int cores = 1;                      // whole cores for its ranks
  std::string address = "127.0.0.1";  // reachable from every rank of the job
  std::vector<std::pair<std::string, std::string>> backend_facts = {};  // from its backend
  bool sees_gpus = true;                                                // its ranks see GPUs
  std::vector<std::pair<std::string, std::string>> device_facts = {};   // from the device-memory backend
};

struct Process {
  int host = 0;  // index into Plan::hosts
  int rank = 0;  // first rank in this process
  int local_rank = 0;
  int rank_count = 1;
  std::vector<std::string> argv;   // argv[0] is absolute, or already found in PATH
  ProcessVariables env;            // added to dtrun's own environment
  std::vector<std::string> unset;  // variables not to inherit
  std::string cwd;                 // absolute
  std::string binding;             // cpuset "0-3"; empty: inherited
  void Fields(auto& io) {
    io("host", host);
    io("rank", rank);
    io("local_rank", local_rank);
    io("rank_count", rank_count);
    io("argv", argv, wire::kMostEntries);
    io("env", env, wire::kMostEntries);
    io("unset", unset, wire::kMostEntries);
    io("cwd", cwd, wire::kMostName);
    io("binding", binding);
  }
};

// The transport of one kind of memory.
struct Route {
  std::string memory;  // "cpu", or a device kind: "cuda"
  std::string by;      // "shm+gloo on eth0", "nccl (NCCL 2.27.5, p2p on)"
  std::string why;     // the reason; may be empty
};

// The interfaces that a host may use between hosts.
struct NetworkRule {
  std::string text;   // in the grammar of core/network/rule.h
  std::string place;  // of the option: "train.toml:5:1: network.interface"
};

// Tokens that a run replaces.
inline constexpr char kTokenPort[] = "⟦master_port⟧";
inline constexpr char kTokenRunDir[] = "⟦run_dir⟧";
inline constexpr char kTokenStore[] = "⟦store⟧";
inline constexpr char kTokenJobKey[] = "⟦job_key⟧";
inline constexpr char kTokenRecorder[] = "⟦recorder⟧";
inline constexpr char kTokenConsole[] = "⟦console⟧";
inline constexpr char kTokenAddress[] = "⟦master_addr⟧";  // for jobs on several hosts
inline constexpr char kTokenGeneration[] = "⟦generation⟧";
inline constexpr char kTokenPmixNamespace[] = "⟦pmix_namespace⟧";

// The token of a port reserved for `rank` on its host: "⟦port_3⟧".
std::string TaskPortToken(int rank);
// The token of the address of a host other than the first: "⟦address_2⟧".
std::string HostAddressToken(std::size_t host);

// Whether to show this backend fact: for an idle backend only its identity, not how it would send.
bool ShowsFact(bool idle, std::string_view key);

struct Plan {
  std::string job;
  std::vector<Host> hosts;
  std::vector<Process> processes;  // by rank
  std::string launcher;
  std::string backend;                                             // "gloo", "delay > gloo", or "none"
  std::vector<std::pair<std::string, std::string>> backend_facts;  // for all hosts, for the run header
  bool backend_idle = false;   // all ranks communicate through shared memory of one host
  std::string device_backend;  // for device memory; empty: none
  std::vector<std::pair<std::string, std::string>> device_facts;  // facts of device_backend
  std::vector<Route> routes;                                      // empty: no devices expected
  std::string binding = "none";                                   // for all ranks; a line for the run header
  std::vector<std::string> warnings;                              // possible errors; lines for the run header
  std::vector<std::string> notes;                                 // choices; lines for the verbose header
  std::vector<std::string> dialects;                              // added by job.dialects
  std::vector<std::string> roles;          // by rank: chief, worker, ps, evaluator; empty: none
  std::vector<std::string> success;        // roles that decide the job's success; empty: all ranks
  std::vector<std::string> withheld;       // variables that no process inherits; "OMPI_*" is a pattern
  pmi::Kind pmi = pmi::Kind::kNone;        // the PMI service for MPI libraries
  int master_port = 0;                     // chosen by the user; 0: any free port
  std::string master_port_place;           // prefix of errors about it
  std::vector<NetworkRule> network_rules;  // by host; empty: dtrun chooses no interface
  std::string network;                     // the chosen network, a line for the run header
  std::string network_others;              // rejected interfaces, with reasons
  std::string log_dir;                     // absolute, with {job} and {time} placeholders
  bool log_dir_is_default = false;         // not set by the user
  std::string log_dir_place;               // prefix of errors about it: "train.toml:7:1: logs.dir: "
  unsigned log_mode = 0700;                // mode of the folder
  output::Style output;                    // how rank output is shown
  std::chrono::nanoseconds grace{};        // time between the first signal and SIGKILL
  std::uint64_t memory = 0;                // limit for all ranks of one host together, in bytes; 0: none
  // What the root was started with, for the other hosts of a manual start to compare (spec::OptionsGiven).
  std::map<std::string, std::string> given;
  std::map<std::string, std::string> record;  // file name -> content, written into the run directory
  int world_size() const;
  const Host* HostOf(int rank) const;  // null: there is no such rank
};

// "cuda memory: staging over gloo, because ..."
std::string RouteText(const Route& route);

// "6 ranks on 3 hosts (node0 2, node1 2, node2 2)"
std::string WorldText(const Plan& plan);

// Ranks that use their port in an argument or variable, so that a run must reserve it.
std::vector<int> TaskPortsUsed(const Plan& plan);

// The plan with every token replaced; `tokens` maps kToken… to text. The job key never appears in
// an argument, even if an argument contains its token.
Plan Resolve(const Plan& plan, const std::map<std::string, std::string>& tokens);

// Text and JSON for `dtrun plan`: tokens unresolved, stable order and layout. For a large job the text shows
// only some processes; JSON has all.
std::string ToText(const Plan& plan);
std::string ToJson(const Plan& plan);
// WriteJson emits pieces, because a large job's JSON takes gigabytes.
void WriteJson(const Plan& plan, const std::function<void(std::string_view)>& write);

}  // namespace dtrun::plan
