// Which hosts a job runs on, and how many ranks live on each.
//
// Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "core/config/settings.h"
#include "core/hosts/host_slots.h"
#include "core/plan/place.h"
#include "core/plan/plan.h"

namespace dtrun::plan {

// Whether that host is this machine, as far as it knows without asking a name service. A platform may have
// another name for it than it has itself.
bool IsHere(const config::Settings& settings, const std::string& host);
// Whether the job has other hosts than this one, or may have. One whose list names this machine alone has
// none: it is started as if there were no list, but with the name and the slots that are given.
bool HasCluster(const config::Settings& settings);
// The hosts as the config has them: of cluster.hosts, else cluster.host_count of them without a name,
// else this machine.
Result<std::vector<hosts::HostSlots>> ListedHosts(const config::Settings& settings);

// The hosts with their ranks, numbered in order. `reported` are those that have come, in order of their
// number. Without any it is all that are listed: each is taken to be like this machine, and one without a
// name is called by its number. Errors carry the place of the value that caused them.
Result<std::vector<Host>> PlaceRanks(const config::Settings& settings, const Hardware& here,
                                     const std::vector<Hardware>& reported);

}  // namespace dtrun::plan
