#include "core/launch/cluster.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

#include "core/base/asio.h"
#include "core/base/endpoint.h"
#include "core/base/number.h"
#include "core/base/port_user.h"
#include "core/base/text.h"
#include "core/hosts/this_machine.h"
#include "core/launch/preparation.h"
#include "core/membership/agent_command.h"
#include "core/membership/network.h"
#include "core/membership/user_secret.h"
#include "core/plan/at.h"
#include "core/plan/dialects.h"
#include "core/plan/hosts.h"
#include "core/plan/network.h"
#include "core/plan/output.h"
#include "core/plugin/plugin_file.h"
#include "core/protocol/hello.h"

namespace dtrun::launch {
namespace {

struct Root {
  std::vector<std::string> names;
  int port = 0;
  std::string port_place = {};  // prefix of errors about the port
};

// "node0", "node0:29400", "[fe80::1]:29400", "fe80::1".
Result<Root> RootOf(const spec::JobSpec& spec) {
  Root root;
  if (spec.cluster.root_port.has()) {
    root.port = static_cast<int>(*spec.cluster.root_port);
    root.port_place = plan::PlacePrefix(spec.cluster.root_port);
  }
  if (!spec.cluster.root.has()) return root;
  const Result<Endpoint> endpoint = ParseEndpoint(*spec.cluster.root);
  if (!endpoint) return plan::At(spec.cluster.root, endpoint.error().text);
  root.names = {endpoint->host};
  if (endpoint->port) {
    root.port = *endpoint->port;
    root.port_place = plan::PlacePrefix(spec.cluster.root);
  }
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

bool IsManual(const spec::JobSpec& spec) {
  return plan::HasCluster(spec) && spec.cluster.connect.is("manual");
}

// The number of this host among `hosts`; checks the requirements of a manual start. -1: unknown, and the root
// assigns one.
Result<int> ManualIndex(const spec::JobSpec& spec, const Root& root,
                        const std::vector<hosts::HostSlots>& hosts) {
  if (root.port == 0) {
    return Error{
        DTRUN_INVALID_ARGUMENT,
        "cluster.connect = \"manual\" needs cluster.root = \"ADDRESS:PORT\", the address at which all hosts "
        "reach host 0"};
  }
  if (!spec.cluster.host_index.has()) {
    if (hosts[0].name.empty()) return RootIsHere(root.names[0], root.port) ? 0 : -1;
    return Error{DTRUN_INVALID_ARGUMENT,
                 "cluster.connect = \"manual\" needs the number of this host; give --host-index, from 0"};
  }
  const auto index = static_cast<int>(*spec.cluster.host_index);
  if (index < static_cast<int>(hosts.size())) return index;
  return plan::At(spec.cluster.host_index, "{} is out of range: the {} hosts are numbered from 0", index,
                  hosts.size());
}

// The index of this machine among the hosts; -1: none.
int Here(const spec::JobSpec& spec, const std::vector<std::string>& hosts) {
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (plan::IsHere(spec, hosts[i])) return static_cast<int>(i);
  }
  return -1;
}

// Queries the launcher of cluster.connect now, so that its errors are reported before anything starts.
Status ReadConnector(const spec::JobSpec& spec, std::shared_ptr<hosts::Launchers> launchers,
                     membership::Cluster* cluster) {
  const std::string& name = *spec.cluster.connect;
  cluster->connect = membership::Cluster::Connect::kLauncher;
  cluster->launcher = name;
  if (launchers == nullptr)
    return plan::At(spec.cluster.connect, "launcher '{}' is not available here", name);
  std::vector<std::string> others = cluster->hosts;
  if (cluster->here >= 0) others.erase(others.begin() + cluster->here);
  const std::vector<std::string> argv = membership::AgentArgv(cluster->dtrun);
  const auto first = launchers->Connect(name, others, argv);
  if (!first) return plan::At(spec.cluster.connect, first.error());
  // A query needs a child process, and would block the membership's loop: only a restart does it.
  cluster->connector = [launchers = std::move(launchers), name, argv, others = std::move(others),
                        first = *first](const std::vector<std::string>& hosts) {
    return hosts == others ? first : launchers->Connect(name, hosts, argv);
  };
  return {};
}

Status ReadStart(const spec::JobSpec& spec, std::shared_ptr<hosts::Launchers> launchers,
                 membership::Cluster* cluster) {
  if (Status shell = CheckRemoteShell(spec); !shell) return shell;
  cluster->remote_shell = *spec.cluster.remote_shell;
  Result<std::string> dtrun = DtrunOnHosts(spec);
  if (!dtrun) return dtrun.error();
  cluster->dtrun = *std::move(dtrun);
  if (spec.cluster.connect.is("ssh")) return {};
  return ReadConnector(spec, std::move(launchers), cluster);
}

const std::vector<std::string> kClasses = {"user-error", "signal", "out-of-memory", "rendezvous",
                                           "network",    "hang",   "launcher",      "plugin"};

std::string Meant(const std::string& word) {
  if (word == "oom") return "did you mean 'out-of-memory'?";
  if (const auto nearest = Nearest(word, kClasses)) return fmt::format("did you mean '{}'?", *nearest);
  return fmt::format("restart.on lists some of {}", fmt::join(kClasses, ", "));
}

}  // namespace

Status CheckAddresses(const spec::JobSpec& spec) {
  const auto root = RootOf(spec);
  return root ? Status() : root.error();
}

Status CheckRemoteShell(const spec::JobSpec& spec) {
  const std::vector<std::string>& words = *spec.cluster.remote_shell;
  if (!words.empty() && !words.front().empty()) return {};
  return plan::At(spec.cluster.remote_shell, "{}; name a program such as \"ssh\"",
                  words.empty() ? "the list is empty" : "its first word is empty");
}

bool RootIsHere(const std::string& host, int port) {
  return hosts::LeadsHere(host) && ProgramListeningOn(port) != "dtrun" && ClaimRoot(port);
}

Result<std::optional<membership::Cluster>> ClusterOf(const spec::JobSpec& spec, const KeyRule& rule,
                                                     std::shared_ptr<hosts::Launchers> launchers) {
  if (spec.ports.last != 0) UsePortRange(spec.ports);  // from here on this process listens only there
  if (!plan::HasCluster(spec)) return std::optional<membership::Cluster>();
  Result<Root> root = RootOf(spec);
  if (!root) return root.error();
  const auto hosts = plan::ListedHosts(spec);
  if (!hosts) return hosts.error();
  membership::Cluster cluster;
  for (const hosts::HostSlots& host : *hosts) cluster.hosts.push_back(host.name);
  cluster.min_hosts =
      static_cast<std::size_t>(spec.cluster.min_hosts.value_or(static_cast<std::int64_t>(hosts->size())));
  cluster.last_call = *spec.cluster.last_call;
  cluster.names = root->names;
  cluster.port = root->port;
  cluster.port_place = root->port_place;
  cluster.join_timeout = *spec.cluster.join_timeout;
  cluster.lost_after = *spec.cluster.lost_after;
  cluster.share_machines = *spec.cluster.oversubscribe;
  // In Kubernetes a pod's name resolves only when it runs; hosts that the job can do without may not be up
  // yet.
  cluster.names_come_late =
      std::getenv("KUBERNETES_SERVICE_HOST") != nullptr || cluster.min_hosts < cluster.hosts.size();
  if (IsManual(spec)) {
    cluster.connect = membership::Cluster::Connect::kManual;
    Result<int> index = ManualIndex(spec, *root, *hosts);
    if (!index) return index.error();
    cluster.here = *index;
    const Result<ClusterKey> found = FindClusterKey(spec, rule);
    if (!found) return found.error();
    cluster.key = found->key;
    cluster.key_origin = found->origin;
    return std::optional(std::move(cluster));
  }
  cluster.here = Here(spec, cluster.hosts);
  if (Status read = ReadStart(spec, std::move(launchers), &cluster); !read) return read.error();
  return std::optional(std::move(cluster));
}

Result<std::optional<protocol::JoinRequest>> JoinRequestOf(const spec::JobSpec& spec, const KeyRule& rule) {
  if (!IsManual(spec)) return std::optional<protocol::JoinRequest>();
  Result<Root> root = RootOf(spec);
  if (!root) return root.error();
  const auto hosts = plan::ListedHosts(spec);
  if (!hosts) return hosts.error();
  Result<int> index = ManualIndex(spec, *root, *hosts);
  if (!index) return index.error();
  if (*index == 0) return std::optional<protocol::JoinRequest>();
  const Result<ClusterKey> found = FindClusterKey(spec, rule);
  if (!found) return found.error();
  protocol::JoinRequest request{*spec.job.name, root->names, root->port, found->key, *index, {}, {}, {}};
  request.key_origin = found->origin;
  request.join_timeout = *spec.cluster.join_timeout;
  request.lost_after = *spec.cluster.lost_after;
  if (spec.ports.last != 0) UsePortRange(spec.ports);
  request.port_range = ToText(UsedPortRange());
  return std::optional(std::move(request));
}

Result<job::RestartPolicy> RestartPolicyOf(const spec::JobSpec& spec) {
  job::RestartPolicy policy;
  policy.max = static_cast<int>(*spec.restart.max);
  policy.backoff = *spec.restart.backoff;
  policy.after_stall = spec.watch.on_stall.is("restart");
  for (const std::string& word : *spec.restart.on) {
    const auto exit_class = verdict::ClassNamed(word);
    if (!exit_class) {
      return plan::At(spec.restart.on, "'{}' is not a failure class; {}", word, Meant(word));
    }
    policy.on.insert(*exit_class);
  }
  return policy;
}

Result<observe::StallPolicy> StallPolicyOf(const spec::JobSpec& spec) {
  constexpr std::chrono::seconds kShortest{1};
  observe::StallPolicy policy;
  policy.fails = !spec.watch.on_stall.is("explain");
  const std::string& text = *spec.watch.stall;
  if (text == "off") return policy;
  const Result<Nanoseconds> after = ParseDuration(text);
  if (!after || *after < kShortest) {
    Error error{
        DTRUN_INVALID_ARGUMENT,
        fmt::format("expected \"off\" or a duration from 1s to 10 years, such as \"10m\"; found '{}'", text)};
    const Result<Nanoseconds> seconds = ParseDuration(text + "s");
    if (NumberOf<double>(text) && seconds && *seconds >= kShortest)
      error.text += fmt::format(", did you mean \"{}s\"?", text);
    return plan::At(spec.watch.stall, error);
  }
  policy.after = *after;
  return policy;
}

Result<metrics::Listening> MetricsOf(const spec::JobSpec& spec) {
  if (!spec.metrics.listen.has()) return metrics::Listening();
  const std::string& text = *spec.metrics.listen;
  const auto wrong = [&](std::string what) {
    return plan::At(spec.metrics.listen, Error{DTRUN_INVALID_ARGUMENT, std::move(what)});
  };
  const Result<Endpoint> endpoint = ParseEndpoint(text, 0);
  error_code error;
  const Ip address = asio::ip::make_address(!endpoint                       ? ""
                                            : endpoint->host == "localhost" ? "127.0.0.1"
                                                                            : endpoint->host,
                                            error);
  if (error || !endpoint->port) {
    return wrong(
        fmt::format("expected a numeric address and a port, such as \"127.0.0.1:9400\" or \"[::1]:9400\"; "
                    "found '{}'",
                    text));
  }
  if (!address.is_loopback() && !spec.metrics.token_file.has()) {
    return wrong(fmt::format(
        "{} is not loopback, so other hosts could read the numbers of the job; listen on "
        "127.0.0.1, or name a file with a token in metrics.token_file: openssl rand -hex 32 > FILE; "
        "chmod 600 FILE",
        endpoint->host));
  }
  return metrics::Listening{address.to_string(), static_cast<std::uint16_t>(*endpoint->port), "",
                            plan::PlacePrefix(spec.metrics.listen)};
}

Result<metrics::Listening> MetricsWithToken(const spec::JobSpec& spec) {
  constexpr std::size_t kShortestToken = 16;
  Result<metrics::Listening> listening = MetricsOf(spec);
  if (!listening || listening->address.empty() || !spec.metrics.token_file.has()) return listening;
  const std::string name = fmt::format("metrics.token_file '{}'", *spec.metrics.token_file);
  Result<std::string> token = ReadKeyFile(*spec.metrics.token_file, name);
  if (!token) return std::move(token).error();
  const bool plain = std::ranges::all_of(*token, [](char c) { return c > ' ' && c <= '~'; });
  if (token->size() < kShortestToken || !plain) {
    return Error::Of(DTRUN_INVALID_ARGUMENT,
                     "{} must have one word of at least {} characters, as `openssl rand -hex 32` prints it",
                     name, kShortestToken);
  }
  listening->token = *std::move(token);
  return listening;
}

std::vector<Error> WrongValues(const spec::JobSpec& spec) {
  std::vector<Error> wrong;
  const auto take = [&](const auto& read) {
    if (!read) wrong.push_back(read.error());
  };
  take(RestartPolicyOf(spec));
  take(StallPolicyOf(spec));
  take(MetricsOf(spec));
  take(CheckAddresses(spec));
  take(CheckRemoteShell(spec));
  take(plan::CheckDialects(spec));
  take(plan::CheckRules(spec));
  take(plan::LogModeOf(spec));
  take(plan::StyleOf(spec));
  return wrong;
}

Status CheckInterface(const spec::JobSpec& spec) {
  if (plan::HasCluster(spec)) return {};
  const auto listed = plan::ListedHosts(spec);
  if (!listed) return listed.error();
  plan::Host here;
  here.name = listed->front().name;
  const auto rules = plan::NetworkRules(spec, {here});
  if (!rules) return rules.error();
  return rules->empty() ? Status() : membership::CheckNamesHere(rules->front());
}

std::string PinOf(const spec::AnyField& pins, const std::filesystem::path& file) {
  if (const auto* one = pins.as<std::string>()) return plugin::Sha256Id(*one);
  const auto* list = pins.as<std::vector<std::string>>();
  if (list == nullptr) return {};
  if (const auto opened = plugin::OpenedFile::Open(file)) {
    const auto id = plugin::FileId(*opened, "", plugin::Sha256Id(list->front()));
    for (const std::string& pin : *list) {
      if (id && *id == plugin::Sha256Id(pin)) return *id;
    }
  }
  return plugin::Sha256Id(list->front());
}

}  // namespace dtrun::launch
