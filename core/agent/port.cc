#include "core/agent/port.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "core/agent/process.h"

namespace dtrun::agent {
namespace {

namespace fs = std::filesystem;

// A local end of some connection or listener on the port, from /proc/net/tcp or tcp6.
struct Entry {
  std::string state;  // "0A" is listening
  std::string inode;  // "0" for connections that no process holds any more
};

std::vector<Entry> EntriesOf(int port) {
  const std::string suffix = fmt::format(":{:04X}", port);
  std::vector<Entry> entries;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(table);
    std::string line;
    std::getline(file, line);  // headings
    while (std::getline(file, line)) {
      std::istringstream fields(line);
      std::string slot, local, remote, skipped;
      Entry entry;
      fields >> slot >> local >> remote >> entry.state;
      for (int i = 0; i < 5; ++i) fields >> skipped;
      fields >> entry.inode;
      if (local.ends_with(suffix)) entries.push_back(entry);
    }
  }
  return entries;
}

// "pid 4242 (python3)", or empty when it cannot be seen: another user's, or a container's.
std::string HolderOf(const std::string& inode) {
  const std::string wanted = "socket:[" + inode + "]";
  std::error_code error;
  for (fs::directory_iterator process("/proc", error), end; !error && process != end;
       process.increment(error)) {
    const pid_t pid = static_cast<pid_t>(std::strtol(process->path().filename().c_str(), nullptr, 10));
    if (pid <= 0) continue;
    std::error_code closed;  // not ours to look into
    for (fs::directory_iterator fd(process->path() / "fd", closed), last; !closed && fd != last;
         fd.increment(closed)) {
      std::error_code gone;
      if (fs::read_symlink(fd->path(), gone) != wanted) continue;
      const auto found = ReadProcess(pid);
      return fmt::format("process {} ({})", pid, found ? found->name : "?");
    }
  }
  return {};
}

Error InUse(int port, const std::vector<Entry>& entries) {
  std::string holder;
  for (const char* state : {"0A", ""}) {
    for (const Entry& entry : entries) {
      if (!holder.empty() || entry.inode == "0" || !entry.state.starts_with(state)) continue;
      holder = HolderOf(entry.inode);
    }
  }
  if (holder.empty()) {
    holder = entries.empty() ? "a socket that does not listen yet, such as another dtrun job"
                             : "a process of another user or container";
  }
  return Error{DTRUN_BUSY,
               fmt::format("port {} is in use by {}; end it, choose another port, or let dtrun choose "
                           "by leaving the port unset",
                           port, holder)};
}

// A socket bound to `port` on every address, both families where the host has IPv6; or the errno.
struct Bound {
  UniqueFd socket;
  int number = 0;
};
Bound Bind(int port, bool reuse) {
  sockaddr_in6 any6{};
  any6.sin6_family = AF_INET6;
  any6.sin6_port = htons(static_cast<std::uint16_t>(port));
  sockaddr_in any4{};
  any4.sin_family = AF_INET;
  any4.sin_port = any6.sin6_port;
  Bound bound;
  for (int family : {AF_INET6, AF_INET}) {
    UniqueFd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int off = 0, on = 1;
    const auto* address = family == AF_INET6 ? reinterpret_cast<const sockaddr*>(&any6)
                                             : reinterpret_cast<const sockaddr*>(&any4);
    const socklen_t size = family == AF_INET6 ? sizeof any6 : sizeof any4;
    if (socket && reuse) ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (socket && family == AF_INET6) ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (socket && ::bind(socket.get(), address, size) == 0) {
      ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
      return {std::move(socket), 0};
    }
    bound.number = errno;
    if (bound.number != EAFNOSUPPORT && bound.number != EADDRNOTAVAIL) break;
  }
  return bound;
}

}  // namespace

Result<HeldPort> HeldPort::Hold(int wanted) {
  // First without SO_REUSEADDR: two jobs that hold the same port would not notice each other with it.
  Bound bound = Bind(wanted, false);
  if (bound.number == EADDRINUSE && wanted != 0) {
    // Connections of an earlier job, closed and fading away (inode 0), are in nobody's way.
    const std::vector<Entry> entries = EntriesOf(wanted);
    bool fading = !entries.empty();
    for (const Entry& entry : entries) fading = fading && entry.inode == "0";
    if (!fading) return InUse(wanted, entries);
    bound = Bind(wanted, true);
    if (bound.number == EADDRINUSE) return InUse(wanted, entries);
  }
  if (!bound.socket) {
    Error error = Error::System(
        wanted == 0 ? "cannot find a free port" : fmt::format("cannot hold port {}", wanted), bound.number);
    if (bound.number == EACCES) error.text += "; ports below 1024 are for root, choose a higher one";
    return error;
  }
  sockaddr_in6 address{};
  socklen_t size = sizeof address;
  if (::getsockname(bound.socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return Error::System("read the number of the held port", errno);
  }
  return HeldPort(std::move(bound.socket), ntohs(address.sin6_port));  // same place in sockaddr_in
}

}  // namespace dtrun::agent
