#include "core/network/loss.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>

namespace dtrun::network {

LossMeter::LossMeter(int socket) : socket_(socket), before_(Read(socket)) {}

double LossMeter::Share() const {
  const Counts now = Read(socket_);
  const std::int64_t sent = now.sent - before_.sent, lost = now.lost - before_.lost;
  if (lost < 2 || sent <= 0) return 0;
  return std::min(1.0, static_cast<double>(lost) / static_cast<double>(sent));
}

LossMeter::Counts LossMeter::Read(int socket) {
  tcp_info info{};  // older kernels fill only a part
  socklen_t size = sizeof info;
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return {};
  return {info.tcpi_data_segs_out, std::int64_t{info.tcpi_total_retrans} - info.tcpi_dsack_dups};
}

void Pace(int socket, double bits_per_s) {
  const auto bytes_per_s = static_cast<std::uint32_t>(std::clamp(bits_per_s / 8, 1e3, 4e9));
  ::setsockopt(socket, SOL_SOCKET, SO_MAX_PACING_RATE, &bytes_per_s, sizeof bytes_per_s);
}

}  // namespace dtrun::network
