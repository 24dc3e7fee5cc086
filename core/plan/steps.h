// The steps of Build (core/plan/build.h), and what they share. Pure, but for AskLauncher, which asks a plugin
// in its probe on the main thread; any thread.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/process_variables.h"
#include "core/base/result.h"
#include "core/environments/dialect.h"
#include "core/network/decision.h"
#include "core/plan/build.h"
#include "core/plan/plan.h"

namespace dtrun::plan {

// --- facts: Each host's backend facts, and the facts that hold for all hosts.

// The backend's answer on `host`.
const plugin::LaunchInfo& InfoOf(const Backend& backend, std::size_t host);

// The id of the plugin file on `host`; empty if that host was not queried.
std::string FileIdOn(const Backend& backend, std::size_t host);

// Merges one text per host: a single text if all are equal, else each with its hosts' names.
std::string TellByHost(const std::vector<Host>& hosts, const std::vector<std::string>& texts);

// Gives each host its facts, and the plan the merged facts, with host names where they differ. Facts about
// pairs of devices ("peer 0>1"), "by" and "agree" facts stay with the hosts.
void AddFacts(const Backend& backend, Plan* plan);
// The same for the device-memory backend.
void AddDeviceFacts(const Backend& backend, Plan* plan);

// --- launch: Asks a launcher plugin, in its probe, for the processes of a job.

struct Launched {
  std::vector<Process> processes;  // by rank; environment has only the launcher's contract
  std::vector<std::string> notes;
};

// Validates the plugin's answer: every rank exactly once, existing hosts, a command. The error for
// a violation names the launcher.
Result<Launched> AskLauncher(const Inputs& inputs, const Plan& plan, const std::vector<std::string>& command,
                             const std::string& cwd);

// --- own dialect: The variables that dtrun itself sets for the processes of a job: common ones, those of a
// host, and the rank's own.

struct CommonDialect {
  std::shared_ptr<const ProcessVariables::Map> shown;
  ProcessVariables::Map hidden;  // must not be expanded in placeholders
};

CommonDialect CommonDialectOf(const Inputs& inputs, const Plan& plan);

// Additional variables for the processes of one host.
struct OfHost {
  ProcessVariables::Map own;     // dtrun's dialect
  ProcessVariables::Map vendor;  // for the backend's library
};

ProcessVariables::Map HostDialect(const Inputs& inputs, const Plan& plan, std::size_t host);

// The rank's identity. REQUIRES: its host is one of the plan's.
void AddRank(const Plan& plan, const Process& process, ProcessVariables* out);

// --- placeholder: Expands "${RANK}" in arguments and environment values.

// Replaces each "${NAME}" by its variable and "$${" by "${"; any other "$" stays. An unknown or
// unclosed name is an error that shows the nearest name and the escape.
Result<std::string> Expand(std::string_view text, const ProcessVariables& variables);

// --- routes: Describes to ranks and the user which backend moves which kind of memory.

struct RouteInputs {
  const spec::JobSpec& spec;
  const DeviceMemory& device;
  const Hardware& hardware;               // of this host
  const std::vector<Hardware>& reported;  // of the job's hosts, after they have joined
  const network::Decision* network;       // null: not determined
};

// Sets the plan's device-memory backend and, if the job can have devices, a line for each route. Errors carry
// the place of the value that caused them. REQUIRES: the plan has its hosts, its backend and the backend's
// facts.
Status AddRoutes(const RouteInputs& inputs, Plan* plan);

// The variables that a rank of that host needs for the routes. Set also if no device is expected: only the
// plugins can explain why there is none.
std::map<std::string, std::string> DeviceVariables(const RouteInputs& inputs, std::size_t host);

// --- vendor: Variables for programs that use a vendor's library directly: from the backend, and for other
// libraries' choice of network.

struct VendorInputs {
  const std::vector<Host>& hosts;
  const std::vector<std::map<std::string, std::string>>& backend;  // from launch_info, by host
  const network::Decision* network;                                // null: not determined
  const std::map<std::string, std::string>& user;                  // job.env
  const std::map<std::string, std::string>& inherited;             // from dtrun's own environment
};

// The variables by host. A user's own setting, in a variable or a backend option, has precedence;
// one note reports it together with the check's finding. A GPU path that is disabled on one host is
// disabled on all, because the ranks of a job must agree on it; a note reports that too.
std::vector<std::map<std::string, std::string>> VendorEnvironments(const VendorInputs& inputs,
                                                                   std::vector<std::string>* notes);

// --- own variables: Warns about variables that the user may have set in vain: DTRUN_... names that are
// misspelt or have meaning only in ranks. (A misspelt DTRUN_CONFIG_... is an error: core/spec.)

// A note for each such variable in `environment`. `options`: the DTRUN_CONFIG_... variables of the options.
// `plugins`: plugin names that DTRUN_LOG may use.
std::vector<std::string> IgnoredVariables(const environments::Variables& environment,
                                          const std::vector<std::string>& options,
                                          const std::vector<std::string>& plugins);

// A note if the user has exported MASTER_PORT for rank 0 and dtrun uses another port; empty if an outer
// launcher or the job set it. `user`: the variables of job.env.
std::string UnusedMasterPort(const environments::Variables& environment, const environments::Variables& user);

// A note if Slurm was asked for another order of ranks (-m cyclic, plane) than dtrun's, which fills each host
// in turn; empty if the order is the same. `ranks`: by host.
std::string UnusedDistribution(const environments::Variables& environment, const std::vector<int>& ranks);

}  // namespace dtrun::plan
