// The variables that ranks and plugins inherit from this process. Any thread, while no other thread changes
// the environment.
#pragma once

#include <map>
#include <string>

namespace dtrun::launch {

// This process's environment.
std::map<std::string, std::string> Environment();
// The variables that ranks inherit: all except the cluster key.
std::map<std::string, std::string> RankEnvironment();

}  // namespace dtrun::launch
