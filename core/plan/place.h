// The hardware of a host, and the placement of its ranks: processors by job.bind, GPUs by
// job.gpu_visibility.
//
// Placement is pure: the hardware is an argument and may be another host's. Any thread, except
// OfferHere.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/binding/gpu.h"
#include "core/binding/policy.h"
#include "core/plan/plan.h"
#include "core/spec/job_spec.h"

namespace dtrun::plan {

// job.env; empty when unset.
const std::map<std::string, std::string>& UserVariables(const spec::JobSpec& spec);

// The hardware that a host's agent reports: the processors that dtrun may use there, and all GPUs.
struct HostOffer {
  binding::Topology topology;
  binding::Gpus gpus;
  std::string name = {};  // the host's own name
  int number = 0;         // of the host in the list
  bool operator==(const HostOffer&) const = default;
};
// Reads this host's hardware. Main thread.
Result<HostOffer> OfferHere();

// The hardware that ranks may use.
struct Hardware {
  binding::Topology topology;
  std::vector<binding::Gpu> gpus;
  binding::Vendor vendor = binding::Vendor::kNvidia;
  std::string name = {};
  int number = 0;
  std::size_t gpus_there = 0;                  // visible or not
  std::string gpu_list = {};                   // what narrows them (binding::ListText)
  std::optional<std::string> gpus_given = {};  // the list of cluster.gpus
};
// The list of cluster.gpus for the host with that number; nothing: none is given.
std::optional<std::string> GpusGiven(const spec::JobSpec& spec, int host);

// Ranks inherit `environment` on every host, so its lists of visible GPUs, and those of job.env, hold there.
Hardware HardwareOf(const spec::JobSpec& spec, const std::map<std::string, std::string>& environment,
                    const HostOffer& offer);
// Of this machine, which may be none of the hosts.
Hardware HardwareHere(const spec::JobSpec& spec, const std::map<std::string, std::string>& environment,
                      HostOffer offer);
// What the host with that number is taken to have before it joins: what `here` has, and the GPUs given to it.
Hardware Assumed(const spec::JobSpec& spec, const Hardware& here, int host);

// Warnings about GPU visibility lists that are probably wrong, one for each host and text.
std::vector<std::string> GpuListWarnings(const spec::JobSpec& spec, const std::vector<Hardware>& hosts);

// The number of ranks that job.processes_per_host requests on a host with this hardware.
Result<int> ProcessesPerHost(const spec::JobSpec& spec, const Hardware& hardware);

struct Placement {
  binding::Binding processors;
  int processor_count = 0;             // that the ranks may use together; 0: they are not bound
  std::string gpu_variable;            // empty: every rank sees all
  std::vector<std::string> gpu_lists;  // the variable's value, by local rank; empty: gpus_given for all
  std::string gpus_given;
};

// `device_backend`: the backend moves device memory, so ranks use GPUs however the ranks were
// counted. Errors carry the place of the value that caused them.
Result<Placement> Place(const spec::JobSpec& spec, const Hardware& hardware, int ranks, bool device_backend);

// Copies the placement of its ranks into a process from a launcher's plan.
void PutInPlace(const Placement& placement, Process* process);

}  // namespace dtrun::plan
