#include "tools/dtrun/cluster.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <filesystem>

#include "core/base/fd.h"
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

Result<control::Key> SharedKey(const config::Settings& settings) {
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

// The number of this host among `count`, and that everything a manual start needs is there.
Result<int> ManualIndex(const config::Settings& settings, const Root& root, std::size_t count) {
  if (root.port == 0) {
    return Error{
        DTRUN_INVALID_ARGUMENT,
        "cluster.connect = \"manual\" needs cluster.root = \"ADDRESS:PORT\", where all hosts reach host 0"};
  }
  if (!settings.Has("cluster.host_index")) {
    return Error{DTRUN_INVALID_ARGUMENT,
                 "cluster.connect = \"manual\" needs the number of this host; give --host-index, from 0"};
  }
  const auto index = static_cast<int>(settings.Int("cluster.host_index"));
  if (index < static_cast<int>(count)) return index;
  return At(settings, "cluster.host_index",
            fmt::format("{} is none of the {} hosts, which count from 0", index, count));
}

}  // namespace

Result<std::optional<agent::Cluster>> ClusterOf(const config::Settings& settings, const plan::Plan& plan) {
  if (!plan::HasCluster(settings)) return std::optional<agent::Cluster>();
  Result<Root> root = RootOf(settings);
  if (!root) return root.error();
  agent::Cluster cluster;
  for (const plan::Host& host : plan.hosts) cluster.hosts.push_back(host.name);
  cluster.names = root->names;
  cluster.port = root->port;
  cluster.join_timeout = settings.Duration("cluster.join_timeout");
  cluster.lost_after = settings.Duration("cluster.lost_after");
  cluster.share_machines = settings.Bool("cluster.oversubscribe");
  if (IsManual(settings)) {
    cluster.connect = agent::Cluster::Connect::kManual;
    Result<int> index = ManualIndex(settings, *root, cluster.hosts.size());
    if (!index) return index.error();
    cluster.here = *index;
    Result<control::Key> key = SharedKey(settings);
    if (!key) return key.error();
    cluster.key = *std::move(key);
    return std::optional(std::move(cluster));
  }
  for (std::size_t i = 0; i < cluster.hosts.size() && cluster.here < 0; ++i) {
    if (agent::IsThisMachine(cluster.hosts[i])) cluster.here = static_cast<int>(i);
  }
  if (cluster.here == 0 && cluster.hosts.size() == 1) return std::optional<agent::Cluster>();
  cluster.remote_shell = settings.List("cluster.remote_shell");
  if (cluster.remote_shell.empty()) return At(settings, "cluster.remote_shell", "the list is empty");
  Result<std::string> dtrun = DtrunOnHosts(settings);
  if (!dtrun) return dtrun.error();
  cluster.dtrun = *std::move(dtrun);
  return std::optional(std::move(cluster));
}

Result<std::optional<agent::Summons>> SummonsOf(const config::Settings& settings) {
  if (!IsManual(settings)) return std::optional<agent::Summons>();
  Result<Root> root = RootOf(settings);
  if (!root) return root.error();
  const auto hosts = plan::ListedHosts(settings);
  if (!hosts) return hosts.error();
  Result<int> index = ManualIndex(settings, *root, hosts->size());
  if (!index) return index.error();
  if (*index == 0) return std::optional<agent::Summons>();
  Result<control::Key> key = SharedKey(settings);
  if (!key) return key.error();
  return std::optional(agent::Summons{settings.Text("job.name"), root->names, root->port, *std::move(key),
                                      *index, (*hosts)[static_cast<std::size_t>(*index)].name,
                                      settings.Duration("cluster.join_timeout"),
                                      settings.Duration("cluster.lost_after")});
}

}  // namespace dtrun::cli
