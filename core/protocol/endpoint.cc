#include "core/protocol/endpoint.h"

#include <fcntl.h>
#include <fmt/format.h>

namespace dtrun::protocol {

std::string TextOf(const Tcp::endpoint& endpoint) {
  const asio::ip::address address = endpoint.address();
  if (address.is_v4()) return fmt::format("{}:{}", address.to_string(), endpoint.port());
  const asio::ip::address_v6 v6 = address.to_v6();
  if (!v6.is_v4_mapped()) return fmt::format("[{}]:{}", v6.to_string(), endpoint.port());
  const auto v4 = asio::ip::make_address_v4(asio::ip::v4_mapped, v6);
  return fmt::format("{}:{}", v4.to_string(), endpoint.port());
}

void CloseOnExec(Tcp::socket& socket) { ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC); }

}  // namespace dtrun::protocol
