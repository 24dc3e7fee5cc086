// What ranks and plugins inherit of this process's variables. Any thread that no other sets variables beside.
#pragma once

#include <map>
#include <string>

namespace dtrun::launch {

// This process's environment.
std::map<std::string, std::string> Environment();
// What ranks inherit of it: all but the key of a cluster.
std::map<std::string, std::string> RankEnvironment();

}  // namespace dtrun::launch
