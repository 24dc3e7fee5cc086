#include "core/network/loss.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>

namespace dtrun::network {

double LossOf(int socket) {
  tcp_info info{};  // older kernels fill only a part
  socklen_t size = sizeof info;
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0;
  const std::int64_t lost = std::int64_t{info.tcpi_total_retrans} - info.tcpi_dsack_dups;
  if (lost < 2 || info.tcpi_data_segs_out == 0) return 0;
  return std::min(1.0, static_cast<double>(lost) / info.tcpi_data_segs_out);
}

void Pace(int socket, double bits_per_s) {
  const auto bytes_per_s = static_cast<std::uint32_t>(std::clamp(bits_per_s / 8, 1e3, 4e9));
  ::setsockopt(socket, SOL_SOCKET, SO_MAX_PACING_RATE, &bytes_per_s, sizeof bytes_per_s);
}

}  // namespace dtrun::network
