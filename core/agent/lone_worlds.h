// Finds ranks whose MPI library has made a world of its own, which programs do not notice: each of
// them trains alone, with the whole data, and all succeed.
//
// Open MPI 4 starts a daemon below such a process; other MPIs leave no trace. Any thread.
#pragma once

#include <sys/types.h>

#include <map>
#include <vector>

namespace dtrun::agent {

// Ascending. `ranks` has the rank that lives in each process.
std::vector<int> RanksInLoneWorlds(const std::map<pid_t, int>& ranks);

}  // namespace dtrun::agent
