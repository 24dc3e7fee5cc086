#include "core/node/rank_contacts.h"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <utility>

#include "core/base/port_user.h"
#include "core/base/read_file.h"
#include "core/process/process.h"

namespace dtrun::node {
namespace {

namespace fs = std::filesystem;

// Prefixes of frameworks' library files. Libraries that other frameworks load come last.
constexpr std::pair<std::string_view, const char*> kLibraries[] = {
    {"/libtorch_cpu.so", "PyTorch"}, {"/libtensorflow", "TensorFlow"}, {"/libjax_common.so", "JAX"},
    {"/xla_extension.so", "JAX"},    {"/libmpi.so.40", "Open MPI"},    {"/libmpi.so.12", "MPICH"},
    {"/libmpich.so", "MPICH"},       {"/libnccl.so", "NCCL"},
};

// Files that are mapped once an MPI has started without a server, in a world of one.
constexpr std::string_view kSingletons[] = {"/mca_ess_singleton.so"};
// MPICH loads UCX's parts at startup. The root knows whether it had a server.
constexpr std::string_view kPartsOfUcx = "/ucx/libuct_";
// Looks that must show training: a single step before joining may be a trial.
constexpr int kLooksAtWork = 2;
// Ports of services unrelated to other ranks: ssh, name service, web, file service.
constexpr std::uint16_t kServices[] = {22, 53, 80, 111, 389, 443, 636, 988, 2049, 8080, 8443};

bool IsLoopback(std::string_view end) {
  // The kernel's form of 127.0.0.0/8, ::1 and no address.
  constexpr std::string_view kOneV6 = "00000000000000000000000001000000:";
  return end.substr(0, end.find(':')).ends_with("7F") || end.starts_with(kOneV6) ||
         end.starts_with("00000000");
}

// Possible error of the kernel's times.
constexpr std::chrono::milliseconds kTick{100};

// The sockets of these processes.
std::set<ino_t> SocketsOf(const std::vector<pid_t>& processes) {
  constexpr std::string_view kSocket = "socket:[";
  std::set<ino_t> inodes;
  for (const pid_t pid : processes) {
    std::error_code gone;
    const std::string folder = "/proc/" + std::to_string(pid) + "/fd";
    for (fs::directory_iterator it(folder, gone), end; !gone && it != end; it.increment(gone)) {
      std::array<char, 64> text{};
      if (::readlink(it->path().c_str(), text.data(), text.size() - 1) <= 0) continue;
      const std::string_view link(text.data());
      if (link.starts_with(kSocket)) inodes.insert(std::strtoull(link.data() + kSocket.size(), nullptr, 10));
    }
  }
  return inodes;
}

bool IsSingleton(const std::vector<std::string>& frameworks, const std::string& maps) {
  const auto has = [&](std::string_view file) { return maps.find(file) != std::string::npos; };
  if (std::ranges::any_of(kSingletons, has)) return true;
  return std::ranges::count(frameworks, "MPICH") != 0 && has(kPartsOfUcx);
}

}  // namespace

std::vector<std::string> FrameworksIn(const std::string& maps) {
  std::vector<std::string> found;
  for (const auto& [file, name] : kLibraries) {
    if (maps.find(file) == std::string::npos || std::ranges::count(found, name) != 0) continue;
    if (std::string_view(name) == "NCCL" && !found.empty()) continue;
    found.emplace_back(name);
  }
  return found;
}

RankContacts::RankContacts(asio::io_context& loop, std::vector<std::uint16_t> ports, std::vector<pid_t> ranks,
                           bool others, std::function<void(const protocol::RendezvousSeen&)> told,
                           Times times)
    : timer_(loop),
      ports_(ports.begin(), ports.end()),
      ranks_(std::move(ranks)),
      others_(others),
      told_(std::move(told)),
      times_(times),
      inspector_(loop) {
  Wait(times_.first);
}

void RankContacts::Wait(std::chrono::milliseconds after) {
  timer_.After(after, [this, after] {
    const bool was_loaded = !looked_.frameworks.empty();
    Look();
    if (!over_) Wait(times_.Next(after, was_loaded, !looked_.frameworks.empty()));
  });
}

std::vector<pid_t> RankContacts::Sample() const {
  for (const pid_t rank : ranks_) {
    const auto process = process::ReadProcess(rank);
    if (!process || process->state == 'Z') continue;
    std::vector<pid_t> sample = {rank};
    for (const process::Process& below : process::Descendants(rank)) sample.push_back(below.pid);
    return sample;
  }
  return {};
}

void RankContacts::Look() {
  if (over_) return;
  const std::vector<pid_t> sample = Sample();
  const protocol::RendezvousSeen before = looked_;
  bool singleton = false;
  for (const pid_t pid : sample) {
    const std::string maps = ReadKernelFile("/proc/" + std::to_string(pid) + "/maps");
    const std::vector<std::string> names = FrameworksIn(maps);
    singleton = singleton || IsSingleton(names, maps);
    for (const std::string& name : names) {
      if (std::ranges::count(looked_.frameworks, name) == 0) looked_.frameworks.push_back(name);
    }
  }
  if (looked_.frameworks.empty()) return;
  if (before.frameworks.empty()) loaded_ = Clock::now();
  looked_.joined = HaveJoined(sample);
  looked_.late = !looked_.joined && Clock::now() - loaded_ >= times_.patience;
  Tell(before);
  if (looked_.joined || sample.empty()) return;
  if (singleton) return SawWork(true);
  inspector_.Look({{0, sample.front()}}, [this](const std::vector<verdict::RankDoing>& found) {
    if (!found.empty() && found.front().trains) SawWork(false);
  });
}

void RankContacts::SawWork(bool for_certain) {
  const protocol::RendezvousSeen before = looked_;
  looked_.joined = HaveJoined(Sample());
  if (!looked_.joined) worked_alone_ += for_certain ? kLooksAtWork : 1;
  looked_.alone = !looked_.joined && worked_alone_ >= kLooksAtWork;
  Tell(before);
}

void RankContacts::Tell(const protocol::RendezvousSeen& before) {
  over_ = looked_.joined || looked_.alone;
  if (over_ || looked_.frameworks != before.frameworks || looked_.late != before.late) told_(looked_);
}

// Whether the other end of a connection belongs to another rank of this host, or to another machine with
// ranks.
bool RankContacts::IsWithRank(const TcpSocket& socket, const std::map<std::string, ino_t>& owners,
                              pid_t sampled) {
  const auto peer = owners.find(socket.remote + socket.local);
  if (peer == owners.end()) {
    return others_ && !IsLoopback(socket.remote) && std::ranges::count(kServices, socket.remote_port) == 0;
  }
  std::vector<pid_t> processes;
  for (const pid_t rank : ranks_) {
    if (rank == sampled) continue;
    processes.push_back(rank);
    for (const process::Process& below : process::Descendants(rank)) processes.push_back(below.pid);
  }
  return peer->second != 0 && SocketsOf(processes).contains(peer->second);
}

bool RankContacts::HaveJoined(const std::vector<pid_t>& sample) {
  const std::set<ino_t> own = SocketsOf(sample);
  const std::vector<TcpSocket> sockets = TcpSocketsSeenBy(sample.empty() ? ::getpid() : sample.front());
  std::map<std::string, ino_t> owners;  // of connections, by local and remote end
  for (const TcpSocket& socket : sockets) {
    owners.emplace(socket.local + socket.remote, socket.inode);
    if (socket.listens && own.contains(socket.inode)) listens_.insert(socket.local_port);
  }
  for (const TcpSocket& socket : sockets) {
    const auto peer = owners.find(socket.remote + socket.local);
    if (!own.contains(socket.inode) || peer == owners.end()) continue;
    if (peer->second != 0 && !own.contains(peer->second)) continue;  // 0: not accepted yet
    inner_.insert({socket.local + socket.remote, socket.remote + socket.local});
  }
  return std::ranges::any_of(sockets, [&](const TcpSocket& socket) {
    if (socket.over > Clock::now() - begin_ + kTick) return false;  // from an earlier job
    if (ports_.contains(socket.local_port) || ports_.contains(socket.remote_port)) return true;
    if (socket.listens || inner_.contains(socket.local + socket.remote)) return false;
    if (own.contains(socket.inode) && IsWithRank(socket, owners, sample.front())) return true;
    return listens_.contains(socket.local_port) || listens_.contains(socket.remote_port);
  });
}

}  // namespace dtrun::node
