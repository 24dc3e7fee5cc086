// The plan of a job: every process that will be started, to the byte.
//
// Built once from the settings by Build, printed by `dtrun plan`, executed by the agent,
// and stored in the run directory. What only a run can know (a port, the run directory,
// the job key) stands in it as a token such as "⟦master_port⟧"; Resolve replaces tokens
// and nothing else. Values; any thread.
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

namespace dtrun::plan {

// Facts of a backend that begin so are each of one pair of devices of a host: "peer 0>1" is device 1
// reading device 0.
inline constexpr char kPeerFact[] = "peer ";
// "agree NAME", with a value: a host where the variable has it speaks for all, because ranks must agree.
inline constexpr char kAgreeFact[] = "agree ";
// "by TOPIC": the keys of the backend's options and the names of variables that decide it, between spaces.
inline constexpr char kByFact[] = "by ";

struct Host {
  std::string name;
  int first_rank = 0;
  int local_size = 0;
  int cores = 1;                                                        // whole cores for its ranks
  std::string address = "127.0.0.1";                                    // that every rank of the job reaches
  std::vector<std::pair<std::string, std::string>> backend_facts = {};  // what the backend says of it
  bool sees_gpus = true;                                                // its ranks do
  std::vector<std::pair<std::string, std::string>> device_facts = {};   // of the backend of device memory
};

struct Process {
  int host = 0;  // index into Plan::hosts
  int rank = 0;  // first rank that lives in it
  int local_rank = 0;
  int rank_count = 1;
  std::vector<std::string> argv;   // argv[0] is an absolute path, or found in PATH already
  ProcessVariables env;            // delta: on top of dtrun's own environment
  std::vector<std::string> unset;  // variables that it does not inherit
  std::string cwd;                 // absolute
  std::string binding;             // cpuset "0-3"; empty: inherited
};

// What moves one kind of memory.
struct Route {
  std::string memory;  // "cpu", or a device's: "cuda"
  std::string by;      // "shm+gloo on eth0", "nccl (NCCL 2.27.5, p2p on)"
  std::string why;     // empty: nothing to say
};

// What a host may use between hosts.
struct NetworkRule {
  std::string text;   // in the grammar of core/network/rule.h
  std::string place;  // of the option: "train.toml:5:1: network.interface"
};

// Names of the tokens that a run resolves.
inline constexpr char kTokenPort[] = "⟦master_port⟧";
inline constexpr char kTokenRunDir[] = "⟦run_dir⟧";
inline constexpr char kTokenStore[] = "⟦store⟧";
inline constexpr char kTokenJobKey[] = "⟦job_key⟧";
inline constexpr char kTokenRecorder[] = "⟦recorder⟧";
inline constexpr char kTokenConsole[] = "⟦console⟧";
inline constexpr char kTokenAddress[] = "⟦master_addr⟧";  // of jobs on several hosts
inline constexpr char kTokenGeneration[] = "⟦generation⟧";
inline constexpr char kTokenPmixNamespace[] = "⟦pmix_namespace⟧";

// The token of a port that is held for `rank` on its host: "⟦port_3⟧".
std::string TaskPortToken(int rank);
// The token of the address of a host other than the first: "⟦address_2⟧".
std::string HostAddressToken(std::size_t host);

// Whether a reader wants the backend's fact: of an idle backend only what it is, not how it would send.
bool ShowsFact(bool idle, std::string_view key);

struct Plan {
  std::string job;
  std::vector<Host> hosts;
  std::vector<Process> processes;  // by rank
  std::string launcher;
  std::string backend;                                             // name, or "none"
  std::vector<std::pair<std::string, std::string>> backend_facts;  // of all hosts, for the run header
  bool backend_idle = false;  // shared memory of one host carries everything
  std::string device_backend;                                     // beside it, for device memory; empty: none
  std::vector<std::pair<std::string, std::string>> device_facts;  // its own
  std::vector<Route> routes;                                      // empty: no device is to be expected
  std::string binding = "none";                                   // of all ranks, a line for the run header
  std::vector<std::string> warnings;                              // what may be wrong; lines for it
  std::vector<std::string> notes;                                 // choices; lines for all of it
  std::vector<std::string> dialects;                              // that job.dialects adds
  std::vector<std::string> roles;             // by rank: chief, worker, ps, evaluator; empty: none
  std::vector<std::string> success;           // roles whose success is the job's; empty: all ranks
  std::vector<std::string> withheld;          // variables that no process inherits; "OMPI_*" is a pattern
  pmi::Kind pmi = pmi::Kind::kNone;           // what MPI libraries find
  int master_port = 0;                        // asked for by the user; 0: any free one
  std::vector<NetworkRule> network_rules;     // by host; empty: dtrun chooses no interface
  std::string network;                        // that was chosen, a line for the run header
  std::string network_others;                 // interfaces that were not, and why
  std::string log_dir;                        // absolute, with {job} and {time} placeholders
  bool log_dir_is_default = false;            // the user chose none
  std::string log_dir_place;                  // before an error of it: "train.toml:7:1: logs.dir: "
  unsigned log_mode = 0700;                   // of the folder
  output::Style output;                       // how the user sees what ranks print
  std::chrono::nanoseconds grace{};           // between the first signal and SIGKILL
  std::uint64_t memory = 0;                   // of the ranks of one host together, in bytes; 0: no limit
  std::map<std::string, std::string> record;  // file name -> content, written into the run directory
  int world_size() const;
};

// "cuda memory: staging over gloo, because ..."
std::string RouteText(const Route& route);

// "6 ranks on 3 hosts (node0 2, node1 2, node2 2)"
std::string WorldText(const Plan& plan);

// Ranks whose port stands in an argument or a variable, so that a run has to hold it.
std::vector<int> TaskPortsUsed(const Plan& plan);

// The plan with every token replaced; `tokens` maps kToken… to text.
// The job key stands in no argument, whoever wrote its token there.
Plan Resolve(const Plan& plan, const std::map<std::string, std::string>& tokens);

// Tokens unresolved, stable order and layout: what `dtrun plan` prints. The text of a large job shows some of its
// processes, JSON has all.
std::string ToText(const Plan& plan);
std::string ToJson(const Plan& plan);
// The same in pieces: a large job's JSON takes gigabytes.
void WriteJson(const Plan& plan, const std::function<void(std::string_view)>& write);

}  // namespace dtrun::plan
