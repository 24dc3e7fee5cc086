// What launcher plugins add to the built-in platforms: sources of hosts and connectors. Core's lower floors
// know them by this interface only; core/launch implements it with plugins, each asked in a child process.
//
// One thread.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/hosts/allocation.h"

namespace dtrun::hosts {

// A command that starts agents, and runs as long as they do.
struct StartCommand {
  std::vector<std::string> argv;
  std::vector<std::size_t> hosts;  // of those asked for
  std::string host_variable;       // that tells each of several hosts its name; empty: its own names do
  std::string trial;               // a command for the user to try by hand; empty: none
  std::string ending;              // in lines of its own that say only that an agent has ended
};

class Launchers {
 public:
  enum class Ability { kFindHosts, kConnect };

  virtual ~Launchers() = default;

  // Names of all that can be loaded and have it, sorted.
  virtual std::vector<std::string> With(Ability ability) = 0;
  // Whether the launcher `name` has it. An error: it is there and cannot be loaded.
  virtual Result<bool> Has(const std::string& name, Ability ability) = 0;

  // DTRUN_NOT_FOUND: its platform is not there. REQUIRES: it has kFindHosts; the same environment every time
  virtual Result<Allocation> FindHosts(const std::string& name, const Environment& environment) = 0;
  // Commands that run `argv` once on each of `hosts`. REQUIRES: it has kConnect
  virtual Result<std::vector<StartCommand>> Connect(const std::string& name,
                                                    const std::vector<std::string>& hosts,
                                                    const std::vector<std::string>& argv) = 0;
};

}  // namespace dtrun::hosts
