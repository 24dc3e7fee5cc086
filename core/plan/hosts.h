// Which hosts a job runs on, and how many ranks live on each.
//
// Pure but for OfferHere; any thread.
#pragma once

#include <string>
#include <vector>

#include "core/config/settings.h"
#include "core/plan/place.h"
#include "core/plan/plan.h"

namespace dtrun::plan {

// What a host offers, as its agent reports it: whole cores, and GPUs that ranks may use.
struct HostOffer {
  int cores = 1;
  int gpus = 0;
};
HostOffer OfferOf(const Hardware& hardware);
// This host's, by the environment of this process. Main thread.
Result<HostOffer> OfferHere();

// This machine as it calls itself.
std::string HostName();

// The hosts of cluster.hosts with their ranks, numbered in order; this machine alone when the
// list is unset. `offers` is by host; where there are fewer, a host is taken to be like this
// machine. Errors carry the place of the value that caused them.
Result<std::vector<Host>> PlaceRanks(const config::Settings& settings, const Hardware& here,
                                     const std::vector<HostOffer>& offers);

}  // namespace dtrun::plan
