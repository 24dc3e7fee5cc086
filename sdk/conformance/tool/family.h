// The processes that descend from this one, as cases leave some behind.
//
// Orphans become children of this process, so that none is lost. Used by the main thread.
#pragma once

#include <sys/types.h>

#include <map>
#include <set>
#include <string>

namespace dtrun::conformance::tool {

class Family {
 public:
  // Ignores children that this process has already, and their children.
  Family();

  // By pid, how each is named, which forked copies share. Zombies included.
  std::map<pid_t, std::string> Descendants() const;
  // Kills and reaps them all; returns those that there were. One that cannot die is given up after 10 s.
  std::map<pid_t, std::string> EndAll() const;

 private:
  std::set<pid_t> earlier_;
};

// How this process is named.
std::string OwnName();

}  // namespace dtrun::conformance::tool
