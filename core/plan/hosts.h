// Which hosts a job runs on, and how many ranks live on each.
//
// Pure but for counting this machine's processors and GPUs. Main thread.
#pragma once

#include <string>
#include <vector>

#include "core/config/settings.h"
#include "core/plan/plan.h"

namespace dtrun::plan {

// What a host offers: this machine's, or what its agent has reported.
struct HostOffer {
  int cores = 1;
  int gpus = 0;
};
HostOffer OfferHere();

// This machine as it calls itself.
std::string HostName();
// Processors that this process may run on.
int UsableCores();
// NVIDIA devices that the driver shows.
int CountGpus();

// The hosts of cluster.hosts with their ranks, numbered in order; this machine alone when the
// list is unset. `offers` is by host; where there are fewer, a host is taken to be like this
// machine. Errors carry the place of the value that caused them.
Result<std::vector<Host>> PlaceRanks(const config::Settings& settings, const std::vector<HostOffer>& offers);

}  // namespace dtrun::plan
