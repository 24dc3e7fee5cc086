#include "core/base/tcp_sockets.h"

#include <unistd.h>

#include <sstream>

#include "core/base/kernel_file.h"
#include "core/base/number.h"

namespace dtrun {
namespace {

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
