#include "core/launch/cluster.h"

#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <utility>

#include "core/base/endpoint.h"
#include "core/base/port_range.h"
#include "core/base/port_user.h"
#include "core/hosts/this_machine.h"
#include "core/launch/preparation.h"
#include "core/membership/agent_command.h"
#include "core/membership/user_secret.h"
#include "core/plan/at.h"
#include "core/plan/hosts.h"
#include "core/protocol/join_request.h"

namespace dtrun::launch {
namespace {

struct Root {
  std::vector<std::string> names;
  int port = 0;
};

// "node0", "node0:29400", "[fe80::1]:29400", "fe80::1".
Result<Root> RootOf(const config::Settings& settings) {
  constexpr char kKey[] = "cluster.root";
  Root root;
  if (settings.Has("cluster.root_port")) root.port = static_cast<int>(settings.Int("cluster.root_port"));
  if (!settings.Has(kKey)) return root;
  const std::string& text = settings.Text(kKey);
  const Result<Endpoint> endpoint = ParseEndpoint(text);
  if (!endpoint) return plan::At(settings, kKey, endpoint.error().text);
  root.names = {endpoint->host};
  if (endpoint->port) root.port = *endpoint->port;
  return root;
}

// Whether this process is the first dtrun of this user on this machine to become the root at `port`, if
// several start at the same moment. The claim ends with the process.
bool ClaimRoot(int port) {
  static std::map<int, membership::UserSecret> claims;
  if (claims.contains(port)) return true;
  Result<membership::UserSecret> claim = membership::UserSecret::Open();
  if (!claim) return true;  // binding the port decides
  if (!claim->ClaimRoot(port)) return false;
  claims.emplace(port, *std::move(claim));
  return true;
}

Result<PortRange> PortsOf(const config::Settings& settings) {
  constexpr char kKey[] = "cluster.port_range";
  if (!settings.Has(kKey)) return PortRange();
  Result<PortRange> range = ParsePortRange(settings.Text(kKey));
  if (!range) return plan::At(settings, kKey, range.error().text);
  return range;
}

// From here on this process listens only in the port range.
Status UsePorts(const config::Settings& settings) {
  const Result<PortRange> range = PortsOf(settings);
  if (!range) return range.error();
  if (range->last != 0) UsePortRange(*range);
  return {};
}

bool IsManual(const config::Settings& settings) {
  return plan::HasCluster(settings) && settings.Text("cluster.connect") == "manual";
}

// The number of this host among `hosts`; checks the requirements of a manual start. -1: unknown, and the root
// assigns one.
Result<int> ManualIndex(const config::Settings& settings, const Root& root,
                        const std::vector<hosts::HostSlots>& hosts) {
  if (root.port == 0) {
    return Error{
        DTRUN_INVALID_ARGUMENT,
        "cluster.connect = \"manual\" needs cluster.root = \"ADDRESS:PORT\", where all hosts reach host 0"};
  }
  if (!settings.Has("cluster.host_index")) {
    if (hosts[0].name.empty()) return RootIsHere(root.names[0], root.port) ? 0 : -1;
    return Error{DTRUN_INVALID_ARGUMENT,
                 "cluster.connect = \"manual\" needs the number of this host; give --host-index, from 0"};
  }
  const auto index = static_cast<int>(settings.Int("cluster.host_index"));
  if (index < static_cast<int>(hosts.size())) return index;
  return plan::At(
      settings, "cluster.host_index",
      fmt::format("{} is not one of the {} hosts, which are numbered from 0", index, hosts.size()));
}

// The index of this machine among the hosts; -1: none.
int Here(const config::Settings& settings, const std::vector<std::string>& hosts) {
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (plan::IsHere(settings, hosts[i])) return static_cast<int>(i);
  }
  return -1;
}

// Queries the launcher of cluster.connect now, so that its errors are reported before anything starts.
Status ReadConnector(const config::Settings& settings, std::shared_ptr<hosts::Launchers> launchers,
                     membership::Cluster* cluster) {
  const std::string& name = settings.Text("cluster.connect");
  cluster->connect = membership::Cluster::Connect::kLauncher;
  cluster->launcher = name;
  if (launchers == nullptr)
    return plan::At(settings, "cluster.connect", fmt::format("launcher '{}' is not to be had here", name));
  std::vector<std::string> others = cluster->hosts;
  if (cluster->here >= 0) others.erase(others.begin() + cluster->here);
  const std::vector<std::string> argv = membership::AgentArgv(cluster->dtrun);
  const auto first = launchers->Connect(name, others, argv);
  if (!first) return plan::At(settings, "cluster.connect", first.error());
  // A query needs a child process, and would block the membership's loop: only a restart does it.
  cluster->connector = [launchers = std::move(launchers), name, argv, others = std::move(others),
                        first = *first](const std::vector<std::string>& hosts) {
    return hosts == others ? first : launchers->Connect(name, hosts, argv);
  };
  return {};
}

Status ReadStart(const config::Settings& settings, std::shared_ptr<hosts::Launchers> launchers,
                 membership::Cluster* cluster) {
  if (Status shell = CheckRemoteShell(settings); !shell) return shell;
  cluster->remote_shell = settings.List("cluster.remote_shell");
  Result<std::string> dtrun = DtrunOnHosts(settings);
  if (!dtrun) return dtrun.error();
  cluster->dtrun = *std::move(dtrun);
  if (settings.Text("cluster.connect") == "ssh") return {};
  return ReadConnector(settings, std::move(launchers), cluster);
}

}  // namespace

Status CheckAddresses(const config::Settings& settings) {
  if (const auto root = RootOf(settings); !root) return root.error();
  const auto range = PortsOf(settings);
  return range ? Status() : range.error();
}

Status CheckRemoteShell(const config::Settings& settings) {
  constexpr char kKey[] = "cluster.remote_shell";
  const std::vector<std::string>& words = settings.List(kKey);
  if (!words.empty() && !words.front().empty()) return {};
  return plan::At(settings, kKey,
                  fmt::format("{}; name a program such as \"ssh\"",
                              words.empty() ? "the list is empty" : "its first word is empty"));
}

bool RootIsHere(const std::string& host, int port) {
  return hosts::LeadsHere(host) && ProgramListeningOn(port) != "dtrun" && ClaimRoot(port);
}

Result<std::optional<membership::Cluster>> ClusterOf(const config::Settings& settings, const KeyRule& rule,
                                                     std::shared_ptr<hosts::Launchers> launchers) {
  if (Status ports = UsePorts(settings); !ports) return ports.error();
  if (!plan::HasCluster(settings)) return std::optional<membership::Cluster>();
  Result<Root> root = RootOf(settings);
  if (!root) return root.error();
  const auto hosts = plan::ListedHosts(settings);
  if (!hosts) return hosts.error();
  membership::Cluster cluster;
  for (const hosts::HostSlots& host : *hosts) cluster.hosts.push_back(host.name);
  cluster.min_hosts = settings.Has("cluster.min_hosts")
                          ? static_cast<std::size_t>(settings.Int("cluster.min_hosts"))
                          : hosts->size();
  cluster.last_call = settings.Duration("cluster.last_call");
  cluster.names = root->names;
  cluster.port = root->port;
  cluster.join_timeout = settings.Duration("cluster.join_timeout");
  cluster.lost_after = settings.Duration("cluster.lost_after");
  cluster.share_machines = settings.Bool("cluster.oversubscribe");
  // In Kubernetes a pod's name resolves only when it runs; hosts that the job can do without may not be up
  // yet.
  cluster.names_come_late =
      std::getenv("KUBERNETES_SERVICE_HOST") != nullptr || cluster.min_hosts < cluster.hosts.size();
  if (IsManual(settings)) {
    cluster.connect = membership::Cluster::Connect::kManual;
    Result<int> index = ManualIndex(settings, *root, *hosts);
    if (!index) return index.error();
    cluster.here = *index;
    const Result<ClusterKey> found = FindClusterKey(settings, rule);
    if (!found) return found.error();
    cluster.key = found->key;
    cluster.key_origin = found->origin;
    return std::optional(std::move(cluster));
  }
  cluster.here = Here(settings, cluster.hosts);
  if (Status read = ReadStart(settings, std::move(launchers), &cluster); !read) return read.error();
  return std::optional(std::move(cluster));
}

Result<std::optional<protocol::JoinRequest>> JoinRequestOf(const config::Settings& settings,
                                                           const KeyRule& rule) {
  if (!IsManual(settings)) return std::optional<protocol::JoinRequest>();
  Result<Root> root = RootOf(settings);
  if (!root) return root.error();
  const auto hosts = plan::ListedHosts(settings);
  if (!hosts) return hosts.error();
  Result<int> index = ManualIndex(settings, *root, *hosts);
  if (!index) return index.error();
  if (*index == 0) return std::optional<protocol::JoinRequest>();
  const Result<ClusterKey> found = FindClusterKey(settings, rule);
  if (!found) return found.error();
  protocol::JoinRequest request{
      settings.Text("job.name"), root->names, root->port, found->key, *index, {}, {}, {}};
  request.key_origin = found->origin;
  request.join_timeout = settings.Duration("cluster.join_timeout");
  request.lost_after = settings.Duration("cluster.lost_after");
  if (Status ports = UsePorts(settings); !ports) return ports.error();
  request.port_range = ToText(UsedPortRange());
  return std::optional(std::move(request));
}

}  // namespace dtrun::launch
