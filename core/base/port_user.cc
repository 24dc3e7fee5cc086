#include "core/base/port_user.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/base/number.h"
#include "core/base/peer_user.h"
#include "core/base/read_file.h"

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
  std::string Text() const { return fmt::format("process {} ({})", pid, program); }
};
constexpr char kNotVisible[] = "a process of another user or container";

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

constexpr int kListen = 0x0A;
constexpr int kTimeWait = 3;                             // timer kind in /proc/net/tcp
constexpr std::chrono::milliseconds kRemembers{60'000};  // fixed in the kernel

bool ReadHex(std::string_view text, long* value) {
  const std::optional<long> number = NumberOf<long>(text, 16);
  *value = number.value_or(0);
  return number.has_value();
}

// "0100007F:1F90". An IPv4-mapped IPv6 address becomes IPv4, because the other end may use that form.
bool ReadEnd(std::string text, std::string* end, std::uint16_t* port) {
  constexpr std::string_view kMapped = "0000000000000000FFFF0000";
  if (text.starts_with(kMapped)) text.erase(0, kMapped.size());
  const std::size_t colon = text.find(':');
  long number = 0;
  if (colon == std::string::npos || !ReadHex(std::string_view(text).substr(colon + 1), &number)) return false;
  *port = static_cast<std::uint16_t>(number);
  *end = std::move(text);
  return true;
}

}  // namespace

Error PortInUse(int port) {
  std::vector<TcpSocket> sockets = SocketsOn(port);
  std::stable_partition(sockets.begin(), sockets.end(), [](const TcpSocket& one) { return one.listens; });
  std::optional<Holder> holder;
  for (const TcpSocket& socket : sockets) {
    if (!holder && socket.inode != 0) holder = HolderOf(socket.inode);
  }
  const std::string who = holder            ? holder->Text()
                          : sockets.empty() ? "a socket that does not listen yet, such as another dtrun job"
                                            : kNotVisible;
  return Error::Of(DTRUN_BUSY, "port {} is in use by {}; end it or choose another port", port, who);
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
    users.push_back(holder ? PortUser{holder->pid, holder->Text()} : PortUser{0, kNotVisible});
  }
  return users;
}

bool OnlyFading(int port) {
  const std::vector<TcpSocket> sockets = SocketsOn(port);
  return !sockets.empty() &&
         std::ranges::all_of(sockets, [](const TcpSocket& socket) { return socket.inode == 0; });
}

std::vector<TcpSocket> ParseTcpSockets(std::string_view text) {
  static const long ticks_per_s = ::sysconf(_SC_CLK_TCK);
  std::vector<TcpSocket> sockets;
  std::istringstream lines{std::string(text)};
  std::string line;
  std::getline(lines, line);  // the header
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string number, local, remote, state, queues, timer, retries;
    long uid = 0, probes = 0, value = 0, left = 0;
    TcpSocket socket;
    if (!(words >> number >> local >> remote >> state >> queues >> timer >> retries >> uid >> probes >>
          socket.inode)) {
      continue;
    }
    if (!ReadEnd(local, &socket.local, &socket.local_port)) continue;
    if (!ReadEnd(remote, &socket.remote, &socket.remote_port) || !ReadHex(state, &value)) continue;
    socket.listens = value == kListen;
    const std::size_t colon = timer.find(':');
    if (colon == std::string::npos || !ReadHex(timer.substr(0, colon), &value)) continue;
    if (value == kTimeWait && ReadHex(timer.substr(colon + 1), &left)) {
      socket.over = kRemembers - std::chrono::milliseconds(left * 1000 / ticks_per_s);
    }
    sockets.push_back(std::move(socket));
  }
  return sockets;
}

std::vector<TcpSocket> TcpSocketsSeenBy(pid_t pid) {
  std::vector<TcpSocket> all;
  for (const char* name : {"tcp", "tcp6"}) {
    std::vector<TcpSocket> some =
        ParseTcpSockets(ReadKernelFile("/proc/" + std::to_string(pid) + "/net/" + name));
    all.insert(all.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
  }
  return all;
}

}  // namespace dtrun
