// Launcher plugins as additional platforms: sources of hosts and connectors. This interface keeps the lower
// layers of core independent of plugins; core/launch implements it and runs each plugin in a child process.
//
// One thread.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/hosts/allocation.h"

namespace dtrun::hosts {

// A command that starts agents and runs as long as they do.
struct StartCommand {
  std::vector<std::string> argv;
  std::vector<std::size_t> hosts;  // indices into the requested hosts
  std::string host_variable;  // passes its name to each of several hosts; empty: hosts know their own names
  std::string trial;          // a command for the user to try manually; empty: none
  std::string ending;         // text of output lines that only report the end of an agent
  void Fields(auto& io) {
    io("argv", argv, wire::kMostEntries);
    io("hosts", hosts, wire::kMostHosts);
    io("host_variable", host_variable);
    io("trial", trial);
    io("ending", ending);
  }
};

class Launchers {
 public:
  enum class Ability { kFindHosts, kConnect };

  virtual ~Launchers() = default;

  // Sorted names of all loadable launchers with this ability.
  virtual std::vector<std::string> With(Ability ability) = 0;
  // Whether the launcher `name` has the ability. An error if it exists but cannot be loaded.
  virtual Result<bool> Has(const std::string& name, Ability ability) = 0;

  // DTRUN_NOT_FOUND if its platform is absent. REQUIRES: it has kFindHosts; the same environment every time
  virtual Result<Allocation> FindHosts(const std::string& name, const Environment& environment) = 0;
  // Commands that together run `argv` once on each of `hosts`. REQUIRES: it has kConnect
  virtual Result<std::vector<StartCommand>> Connect(const std::string& name,
                                                    const std::vector<std::string>& hosts,
                                                    const std::vector<std::string>& argv) = 0;
};

}  // namespace dtrun::hosts
