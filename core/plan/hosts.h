// The hosts of a job and their numbers of ranks.
//
// Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "core/hosts/host_slots.h"
#include "core/plan/place.h"
#include "core/plan/plan.h"
#include "core/spec/job_spec.h"

namespace dtrun::plan {

// Whether `host` is this machine, without a query to the name service. A platform's name for a host may
// differ from the host's own name.
bool IsHere(const spec::JobSpec& spec, const std::string& host);
// Whether the job has, or may have, hosts other than this one. A list that names only this machine counts as
// no cluster: the job starts as if there were no list, but with the given name and slots.
bool HasCluster(const spec::JobSpec& spec);
// The hosts in the config: cluster.hosts, else cluster.host_count unnamed hosts, else this machine.
Result<std::vector<hosts::HostSlots>> ListedHosts(const spec::JobSpec& spec);

// The hosts with their ranks, numbered in order. `reported` has the hosts that joined, ordered by number. If
// it is empty, all listed hosts are used: each is assumed to equal this machine, and an unnamed one is named
// by its number. Errors carry the place of the value that caused them.
Result<std::vector<Host>> PlaceRanks(const spec::JobSpec& spec, const Hardware& here,
                                     const std::vector<Hardware>& reported);

}  // namespace dtrun::plan
