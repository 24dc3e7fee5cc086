// What a host has, and where its ranks run: their processors by job.bind, their GPUs by
// job.gpu_visibility.
//
// Placing is pure: what the host has is given, so it can be another host than this. Any
// thread, but for OfferHere.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/binding/gpu.h"
#include "core/binding/policy.h"
#include "core/config/settings.h"
#include "core/plan/plan.h"

namespace dtrun::plan {

// job.env; empty when unset.
const std::map<std::string, std::string>& UserVariables(const config::Settings& settings);

// What a host has, as its agent reports it: the processors that dtrun may use there, and all GPUs.
struct HostOffer {
  binding::Topology topology;
  binding::Gpus gpus;
  std::string name = {};  // as it calls itself
  int number = 0;         // of the host in the list
  bool operator==(const HostOffer&) const = default;
};
// This host's. Main thread.
Result<HostOffer> OfferHere();

// What ranks may use of it.
struct Hardware {
  binding::Topology topology;
  std::vector<binding::Gpu> gpus;
  binding::Vendor vendor = binding::Vendor::kNvidia;
  std::string name = {};
  int number = 0;
  std::size_t gpus_there = 0;  // visible or not
  std::string gpu_list = {};   // what narrows them (binding::ListText)
};
// Ranks inherit `environment` on every host, so its lists of visible GPUs, and those of job.env, hold there.
Hardware HardwareOf(const config::Settings& settings, const std::map<std::string, std::string>& environment,
                    const HostOffer& offer);

// What is to be said of lists of visible GPUs that cannot be meant, one for each host and text.
std::vector<std::string> GpuListWarnings(const config::Settings& settings,
                                         const std::vector<Hardware>& hosts);

// Ranks per host that job.processes_per_host asks for on a host with that hardware.
Result<int> ProcessesPerHost(const config::Settings& settings, const Hardware& hardware);

struct Placement {
  binding::Binding processors;
  int processor_count = 0;             // that the ranks may use together; 0: they are not bound
  std::string gpu_variable;            // empty: every rank sees all
  std::vector<std::string> gpu_lists;  // the variable's value, by local rank
};

// `device_backend`: the backend moves device memory, so ranks use GPUs however they were
// counted. Errors carry the place of the value that caused them.
Result<Placement> Place(const config::Settings& settings, const Hardware& hardware, int ranks,
                        bool device_backend);

// Writes the place of its ranks into a process that a launcher has planned.
void PutInPlace(const Placement& placement, Process* process);

}  // namespace dtrun::plan
