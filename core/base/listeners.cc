#include "core/base/listeners.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>

#include "core/base/fd.h"

namespace dtrun {
namespace {

struct ListenersRequest {
  nlmsghdr head;
  inet_diag_req_v2 body;
};

// Whether one of the answers in `bytes` is about `port` (network byte order); sets `over` after the last
// answer.
std::optional<bool> Among(const char* bytes, std::size_t size, std::uint16_t port, bool* over) {
  for (std::size_t at = 0; at + sizeof(nlmsghdr) <= size;) {
    nlmsghdr head{};
    std::memcpy(&head, bytes + at, sizeof head);
    if (head.nlmsg_len < sizeof head || head.nlmsg_len > size - at) return std::nullopt;
    if (head.nlmsg_type == NLMSG_DONE) {
      *over = true;
      return false;
    }
    if (head.nlmsg_type != SOCK_DIAG_BY_FAMILY || head.nlmsg_len < NLMSG_LENGTH(sizeof(inet_diag_msg)))
      return std::nullopt;
    inet_diag_msg socket{};
    std::memcpy(&socket, bytes + at + NLMSG_HDRLEN, sizeof socket);
    if (socket.id.idiag_sport == port) return true;
    at += NLMSG_ALIGN(head.nlmsg_len);
  }
  return false;
}

// nullopt if the kernel does not support the query.
std::optional<bool> HasListener(std::uint8_t family, std::uint16_t port) {
  const UniqueFd kernel(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!kernel) return std::nullopt;
  ListenersRequest request{};
  request.head.nlmsg_len = sizeof request;
  request.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  request.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  request.body.sdiag_family = family;
  request.body.sdiag_protocol = IPPROTO_TCP;
  request.body.idiag_states = 1U << TCP_LISTEN;
  request.body.id.idiag_sport = port;
  sockaddr_nl to{};
  to.nl_family = AF_NETLINK;
  if (::sendto(kernel.get(), &request, sizeof request, 0, reinterpret_cast<sockaddr*>(&to), sizeof to) < 0)
    return std::nullopt;
  alignas(nlmsghdr) std::array<char, 32768> answer{};
  for (bool over = false; !over;) {
    const ssize_t size = ::recv(kernel.get(), answer.data(), answer.size(), 0);  // the kernel answers at once
    if (size <= 0) return std::nullopt;
    const auto found = Among(answer.data(), static_cast<std::size_t>(size), port, &over);
    if (!found || *found) return found;
  }
  return false;
}

}  // namespace

bool MayHaveListener(int port) {
  const auto wire = htons(static_cast<std::uint16_t>(port));
  return HasListener(AF_INET, wire).value_or(true) || HasListener(AF_INET6, wire).value_or(true);
}

}  // namespace dtrun
