#include "core/agent/lone_worlds.h"

#include <unistd.h>

#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "core/agent/process.h"

namespace dtrun::agent {
namespace {

bool ServesOneProcess(pid_t daemon) {
  std::ifstream file("/proc/" + std::to_string(daemon) + "/cmdline", std::ios::binary);
  const std::string words((std::istreambuf_iterator<char>(file)), {});
  return words.find("--singleton-died-pipe") != std::string::npos;
}

}  // namespace

std::vector<int> RanksInLoneWorlds(const std::map<pid_t, int>& ranks) {
  std::map<pid_t, int> owners = ranks;
  std::set<int> found;
  for (const Process& process : Descendants(::getpid())) {  // parents come first
    const auto parent = owners.find(process.parent);
    if (parent == owners.end()) continue;
    owners.emplace(process.pid, parent->second);
    if (process.name == "orted" && ServesOneProcess(process.pid)) found.insert(parent->second);
  }
  return {found.begin(), found.end()};
}

}  // namespace dtrun::agent
