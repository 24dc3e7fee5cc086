// mysite.cc - a source of hosts: those that the scheduler of a site gave to the job, in a variable such as
// MYSITE_NODES="node1:2 node2:2", names with the ranks that each has room for.
//
//   dtrun --plugin-dir out --set cluster.from=mysite -- ./train
//
// With cluster.from = "auto" dtrun asks it after the platforms that it knows; where cluster.from is unset, not at all.
// dtrun reaches the hosts by ssh; a site with a command of its own overrides Connect, too.
#include <algorithm>
#include <sstream>
#include <string>

#include "dtrun/plugin.hpp"

namespace {

namespace sdk = dtrun::sdk;

constexpr char kNodes[] = "MYSITE_NODES";

class MySite final : public sdk::Launcher {
 public:
  MySite(const sdk::Host&, const sdk::Options&) {}

  sdk::Allocation FindHosts(const sdk::HostsQuery& query) override {
    const auto nodes = query.Variable(kNodes);  // not getenv: dtrun asks for an environment of its choice
    if (!nodes) throw sdk::Failure(DTRUN_NOT_FOUND, std::string(kNodes) + " is unset; run dtrun in a job");
    sdk::Allocation out;
    out.evidence = kNodes;
    std::istringstream words(*nodes);
    for (std::string word; words >> word;) out.hosts.push_back(Read(word, *nodes));
    for (const sdk::AllocatedHost& host : out.hosts) {
      const auto same = [&](const sdk::AllocatedHost& other) { return other.name == host.name; };
      if (std::count_if(out.hosts.begin(), out.hosts.end(), same) > 1)
        throw Contradiction(*nodes, "has '" + host.name + "' twice");
    }
    if (out.hosts.empty()) throw Contradiction(*nodes, "names no host");
    return out;
  }

 private:
  // Any failure but DTRUN_NOT_FOUND ends the search: the platform is there, and something is wrong with it.
  static sdk::Failure Contradiction(const std::string& nodes, const std::string& what) {
    return sdk::Failure(DTRUN_FAILED_PRECONDITION, std::string(kNodes) + "='" + nodes + "' " + what);
  }
  static sdk::AllocatedHost Read(const std::string& word, const std::string& nodes) {
    const std::size_t colon = word.find(':');
    const std::string digits = colon == word.npos ? "" : word.substr(colon + 1);
    const bool number =
        !digits.empty() && digits.size() < 5 && digits.find_first_not_of("0123456789") == word.npos;
    if (!number || std::stoi(digits) == 0)
      throw Contradiction(nodes, "has '" + word + "', which is no NAME:RANKS");
    return {word.substr(0, colon), std::stoi(digits)};
  }
};

}  // namespace

DTRUN_SDK_PLUGIN(MySite, "mysite", "1.0", "dtrun examples", "Apache-2.0", "the nodes of a job of our site")
