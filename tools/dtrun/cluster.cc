#include "tools/dtrun/cluster.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>

#include "core/base/fd.h"
#include "core/base/port_user.h"
#include "core/plan/hosts.h"
#include "tools/dtrun/prepare.h"

namespace dtrun::cli {
namespace {

struct Root {
  std::vector<std::string> names;
  int port = 0;
};

Error At(const config::Settings& settings, const char* key, const std::string& text) {
  const std::string& place = settings.Get(key).origin.place;
  return Error{DTRUN_INVALID_ARGUMENT,
               fmt::format("{}{}{}: {}", place, place.empty() ? "" : ": ", key, text)};
}

// "node0", "node0:29400", "[fe80::1]:29400", "fe80::1".
Result<Root> RootOf(const config::Settings& settings) {
  constexpr char kKey[] = "cluster.root";
  if (!settings.Has(kKey)) return Root{};
  const std::string& text = settings.Text(kKey);
  const bool bracketed = text.starts_with('[');
  const auto end = bracketed ? text.find(']') : 0;
  auto colon = text.rfind(':');
  if (bracketed ? colon < end : text.find(':') != colon) colon = std::string::npos;
  Root root;
  const std::string name = text.substr(0, colon);
  root.names = {bracketed ? text.substr(1, end - 1) : name};
  if (end == std::string::npos || root.names[0].empty()) {
    return At(settings, kKey, fmt::format("'{}' is not ADDRESS or ADDRESS:PORT", text));
  }
  if (colon == std::string::npos) return root;
  const char* const last = text.data() + text.size();
  const auto [next, error] = std::from_chars(text.data() + colon + 1, last, root.port);
  if (error == std::errc{} && next == last && root.port >= 1 && root.port <= 65535) return root;
  return At(settings, kKey, fmt::format("'{}' has no port from 1 to 65535 behind its colon", text));
}

// Whether nobody else of this user, in this network namespace, has claimed to be the root at `port`. The
// claim is a name in the abstract namespace of Unix sockets and ends with the process: of several that start
// in the same instant one is the first.
bool ClaimRoot(int port) {
  static std::map<int, UniqueFd> claims;
  if (claims.contains(port)) return true;
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  const std::string name = fmt::format("dtrun-root-{}-{}", ::getuid(), port);
  std::memcpy(address.sun_path + 1, name.data(), name.size());  // behind a zero: abstract
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  UniqueFd claim(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!claim) return true;  // the port itself will tell
  if (::bind(claim.get(), reinterpret_cast<const sockaddr*>(&address), bytes) != 0 && errno == EADDRINUSE)
    return false;
  claims.emplace(port, std::move(claim));
  return true;
}

Result<std::string> ReadKeyFile(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return Error::System(fmt::format("open cluster.key_file '{}'", path), errno);
  struct stat info {};
  if (::fstat(file.get(), &info) == 0 && (info.st_mode & 0077) != 0) {
    return Error{
        DTRUN_FAILED_PRECONDITION,
        fmt::format("cluster.key_file '{}' has mode {:04o}, so others can read the key; run: chmod 600 '{}'",
                    path, info.st_mode & 07777, path)};
  }
  char bytes[256];
  const ssize_t size = ::read(file.get(), bytes, sizeof bytes);
  if (size < 0) return Error::System(fmt::format("read cluster.key_file '{}'", path), errno);
  std::string text(bytes, static_cast<std::size_t>(size));
  text.erase(text.find_last_not_of(" \r\n\t") + 1);
  return text;
}

Result<control::Key> SharedKey(const config::Settings& settings, const std::string& key_text) {
  if (!key_text.empty() && !HasKey(settings)) return control::Key::FromText(key_text);
  std::string digits, origin = kClusterKey;
  if (settings.Has("cluster.key_file")) {
    Result<std::string> read = ReadKeyFile(settings.Text("cluster.key_file"));
    if (!read) return read.error();
    digits = *std::move(read);
    origin = fmt::format("cluster.key_file '{}'", settings.Text("cluster.key_file"));
  } else if (const char* value = std::getenv(kClusterKey); value != nullptr) {
    digits = value;
  } else {
    return Error{
        DTRUN_INVALID_ARGUMENT,
        fmt::format("cluster.connect = \"manual\" needs a key that all hosts share; write the output of "
                    "`openssl rand -hex 32` into cluster.key_file or {}",
                    kClusterKey)};
  }
  Result<control::Key> key = control::Key::FromHex(digits);
  if (key) return key;
  return Error{key.error().code, fmt::format("{}: {}", origin, key.error().text)};
}

bool IsManual(const config::Settings& settings) {
  return plan::HasCluster(settings) && settings.Text("cluster.connect") == "manual";
}

// The number of this host among `hosts`, and that everything a manual start needs is there. -1: it has none,
// and the root deals one out.
Result<int> ManualIndex(const config::Settings& settings, const Root& root,
                        const std::vector<cluster::HostSlots>& hosts) {
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
  return At(settings, "cluster.host_index",
            fmt::format("{} is none of the {} hosts, which count from 0", index, hosts.size()));
}

// Which of the hosts this machine is, as far as it knows without asking a name service; -1: none. Slurm may
// have another name for it than it has itself.
int Here(const std::vector<std::string>& hosts) {
  const char* const node = std::getenv("SLURMD_NODENAME");
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (agent::IsThisMachine(hosts[i]) || (node != nullptr && hosts[i] == node)) return static_cast<int>(i);
  }
  return -1;
}

Status ReadStart(const config::Settings& settings, agent::Cluster* cluster) {
  using Connect = agent::Cluster::Connect;
  cluster->connect = settings.Text("cluster.connect") == "slurm" ? Connect::kSlurm : Connect::kShell;
  if (cluster->connect == Connect::kSlurm && std::getenv("SLURM_JOB_ID") == nullptr) {
    return At(settings, "cluster.connect",
              "\"slurm\" starts agents in an allocation, and SLURM_JOB_ID is unset; run dtrun from sbatch or "
              "salloc");
  }
  cluster->remote_shell = settings.List("cluster.remote_shell");
  if (cluster->remote_shell.empty()) return At(settings, "cluster.remote_shell", "the list is empty");
  Result<std::string> dtrun = DtrunOnHosts(settings);
  if (!dtrun) return dtrun.error();
  cluster->dtrun = *std::move(dtrun);
  return {};
}

}  // namespace

bool RootIsHere(const std::string& host, int port) {
  return agent::LeadsHere(host) && ProgramListeningOn(port) != "dtrun" && ClaimRoot(port);
}

bool HasKey(const config::Settings& settings) {
  return settings.Has("cluster.key_file") || std::getenv(kClusterKey) != nullptr;
}

Result<std::optional<agent::Cluster>> ClusterOf(const config::Settings& settings,
                                                const std::string& key_text) {
  if (!plan::HasCluster(settings)) return std::optional<agent::Cluster>();
  Result<Root> root = RootOf(settings);
  if (!root) return root.error();
  const auto hosts = plan::ListedHosts(settings);
  if (!hosts) return hosts.error();
  agent::Cluster cluster;
  for (const cluster::HostSlots& host : *hosts) cluster.hosts.push_back(host.name);
  cluster.min_hosts = settings.Has("cluster.min_hosts")
                          ? static_cast<std::size_t>(settings.Int("cluster.min_hosts"))
                          : hosts->size();
  cluster.last_call = settings.Duration("cluster.last_call");
  cluster.names = root->names;
  cluster.port = root->port;
  cluster.join_timeout = settings.Duration("cluster.join_timeout");
  cluster.lost_after = settings.Duration("cluster.lost_after");
  cluster.share_machines = settings.Bool("cluster.oversubscribe");
  if (IsManual(settings)) {
    cluster.connect = agent::Cluster::Connect::kManual;
    Result<int> index = ManualIndex(settings, *root, *hosts);
    if (!index) return index.error();
    cluster.here = *index;
    Result<control::Key> key = SharedKey(settings, key_text);
    if (!key) return key.error();
    cluster.key = *std::move(key);
    return std::optional(std::move(cluster));
  }
  cluster.here = Here(cluster.hosts);
  if (cluster.here == 0 && cluster.hosts.size() == 1) return std::optional<agent::Cluster>();
  if (Status read = ReadStart(settings, &cluster); !read) return read.error();
  return std::optional(std::move(cluster));
}

Result<std::optional<agent::Summons>> SummonsOf(const config::Settings& settings,
                                                const std::string& key_text) {
  if (!IsManual(settings)) return std::optional<agent::Summons>();
  Result<Root> root = RootOf(settings);
  if (!root) return root.error();
  const auto hosts = plan::ListedHosts(settings);
  if (!hosts) return hosts.error();
  Result<int> index = ManualIndex(settings, *root, *hosts);
  if (!index) return index.error();
  if (*index == 0) return std::optional<agent::Summons>();
  Result<control::Key> key = SharedKey(settings, key_text);
  if (!key) return key.error();
  agent::Summons summons{
      settings.Text("job.name"), root->names, root->port, *std::move(key), *index, {}, {}, {}};
  summons.join_timeout = settings.Duration("cluster.join_timeout");
  summons.lost_after = settings.Duration("cluster.lost_after");
  return std::optional(std::move(summons));
}

}  // namespace dtrun::cli
