#include "core/base/port_user.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/kernel_file.h"
#include "core/base/peer_user.h"
#include "core/base/tcp_sockets.h"

namespace dtrun {
namespace {

namespace fs = std::filesystem;

// The sockets with this local port.
std::vector<TcpSocket> SocketsOn(int port) {
  std::vector<TcpSocket> sockets = TcpSocketsSeenBy(::getpid());
  std::erase_if(sockets, [port](const TcpSocket& socket) { return socket.local_port != port; });
  return sockets;
}

struct Holder {
  pid_t pid = 0;
  std::string program;
};

// nullopt if the process is not visible (another user's or container's).
std::optional<Holder> HolderOf(ino_t inode) {
  const std::string wanted = fmt::format("socket:[{}]", inode);
  std::error_code error;
  for (fs::directory_iterator process("/proc", error), end; !error && process != end;
       process.increment(error)) {
    const pid_t pid = static_cast<pid_t>(std::strtol(process->path().filename().c_str(), nullptr, 10));
    if (pid <= 0) continue;
    std::error_code closed;  // permission denied
    for (fs::directory_iterator fd(process->path() / "fd", closed), last; !closed && fd != last;
         fd.increment(closed)) {
      std::error_code gone;
      if (fs::read_symlink(fd->path(), gone) != wanted) continue;
      std::string name = ReadKernelFile(process->path() / "comm");
      name.erase(std::min(name.find('\n'), name.size()));
      return Holder{pid, name.empty() ? "?" : name};
    }
  }
  return std::nullopt;
}

}  // namespace

Error PortInUse(int port) {
  std::vector<TcpSocket> sockets = SocketsOn(port);
  std::stable_partition(sockets.begin(), sockets.end(), [](const TcpSocket& one) { return one.listens; });
  std::optional<Holder> holder;
  for (const TcpSocket& socket : sockets) {
    if (!holder && socket.inode != 0) holder = HolderOf(socket.inode);
  }
  const std::string who = holder            ? fmt::format("process {} ({})", holder->pid, holder->program)
                          : sockets.empty() ? "a socket that does not listen yet, such as another dtrun job"
                                            : "a process of another user or container";
  return Error{DTRUN_BUSY,
               fmt::format("port {} is in use by {}; end it, choose another port, or let dtrun choose "
                           "by leaving the port unset",
                           port, who)};
}

std::string ProgramListeningOn(int port) {
  for (const TcpSocket& socket : SocketsOn(port)) {
    if (!socket.listens) continue;
    if (auto holder = HolderOf(socket.inode)) return std::move(holder->program);
  }
  return {};
}

std::vector<PortUser> ListenersOn(int port) {
  std::vector<PortUser> users;
  if (!MayHaveListener(port)) return users;
  for (const TcpSocket& socket : SocketsOn(port)) {
    if (!socket.listens) continue;
    const auto holder = HolderOf(socket.inode);
    users.push_back(holder
                        ? PortUser{holder->pid, fmt::format("process {} ({})", holder->pid, holder->program)}
                        : PortUser{0, "a process of another user or container"});
  }
  return users;
}

bool OnlyFading(int port) {
  const std::vector<TcpSocket> sockets = SocketsOn(port);
  return !sockets.empty() &&
         std::ranges::all_of(sockets, [](const TcpSocket& socket) { return socket.inode == 0; });
}

}  // namespace dtrun
