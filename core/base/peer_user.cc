#include "core/base/peer_user.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>

#include "core/base/fd.h"

namespace dtrun {
namespace {

struct End {
  std::array<std::uint32_t, 4> address{};
  std::uint16_t port = 0;  // in network byte order
  std::uint8_t family = AF_UNSPEC;
};

template <class Ask>
std::optional<End> EndOf(Ask ask, int connection) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  if (ask(connection, reinterpret_cast<sockaddr*>(&name), &size) != 0) return std::nullopt;
  End end;
  end.family = static_cast<std::uint8_t>(name.ss_family);
  if (name.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(name);
    end.address[0] = v4.sin_addr.s_addr;
    end.port = v4.sin_port;
  } else if (name.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(name);
    std::memcpy(end.address.data(), &v6.sin6_addr, sizeof v6.sin6_addr);
    end.port = v6.sin6_port;
  } else {
    return std::nullopt;
  }
  return end;
}

// Asks the kernel about TCP sockets: sock_diag(7). Invalid if it does not take the request.
UniqueFd AskKernel(inet_diag_req_v2 body, std::uint16_t flags) {
  struct {
    nlmsghdr head;
    inet_diag_req_v2 body;
  } request{{}, body};
  request.head.nlmsg_len = sizeof request;
  request.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  request.head.nlmsg_flags = flags;
  request.body.sdiag_protocol = IPPROTO_TCP;
  sockaddr_nl to{};
  to.nl_family = AF_NETLINK;
  UniqueFd kernel(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (kernel &&
      ::sendto(kernel.get(), &request, sizeof request, 0, reinterpret_cast<sockaddr*>(&to), sizeof to) < 0)
    kernel.Reset();
  return kernel;
}

// The kernel's entry of the socket with local end `own` and remote end `peer`.
struct Found {
  bool told = false;  // the kernel supports such requests
  std::optional<inet_diag_msg> socket;
};

Found Find(const End& own, const End& peer) {
  inet_diag_req_v2 body{};
  body.sdiag_family = own.family;
  body.idiag_states = ~0U;
  body.id.idiag_sport = own.port;
  body.id.idiag_dport = peer.port;
  std::ranges::copy(own.address, body.id.idiag_src);
  std::ranges::copy(peer.address, body.id.idiag_dst);
  std::ranges::fill(body.id.idiag_cookie, INET_DIAG_NOCOOKIE);
  const UniqueFd kernel = AskKernel(body, NLM_F_REQUEST);
  if (!kernel) return {};
  alignas(nlmsghdr) std::array<char, 8192> answer{};
  const ssize_t size =
      ::recv(kernel.get(), answer.data(), answer.size(), 0);  // already queued; does not block
  const auto& head = reinterpret_cast<const nlmsghdr&>(answer);
  if (size < static_cast<ssize_t>(sizeof head)) return {};
  if (head.nlmsg_type == NLMSG_ERROR) {
    int error = 0;
    if (size < static_cast<ssize_t>(NLMSG_HDRLEN + sizeof error)) return {};
    std::memcpy(&error, answer.data() + NLMSG_HDRLEN, sizeof error);
    // Only the kernel's TCP handler answers ENOENT, when no socket matches an exact request.
    return {error == -ENOENT, std::nullopt};
  }
  if (head.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
      size < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(inet_diag_msg))))
    return {};
  inet_diag_msg socket{};
  std::memcpy(&socket, answer.data() + NLMSG_HDRLEN, sizeof socket);
  // Without a connection the kernel returns the listener of the port.
  if (socket.id.idiag_dport != peer.port) return {true, std::nullopt};
  return {true, socket};
}

bool Stands(int connection) {
  tcp_info info{};
  socklen_t size = sizeof info;
  return ::getsockopt(connection, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
         info.tcpi_state == TCP_ESTABLISHED;
}

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
  inet_diag_req_v2 body{};
  body.sdiag_family = family;
  body.idiag_states = 1U << TCP_LISTEN;
  body.id.idiag_sport = port;
  const UniqueFd kernel = AskKernel(body, NLM_F_REQUEST | NLM_F_DUMP);
  if (!kernel) return std::nullopt;
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

PeerOwner OwnerOfPeer(int connection) {
  const std::optional<End> here = EndOf(::getsockname, connection), there = EndOf(::getpeername, connection);
  if (!here || !there) return {true, {}};  // the connection is closed
  const Found found = Find(*there, *here);
  if (!found.told) return {};
  // A closed socket has no inode and user 0. While the connection stands, no other process can have had the
  // two ports.
  if (!found.socket || found.socket->idiag_inode == 0 || !Stands(connection)) return {true, {}};
  return {true, found.socket->idiag_uid};
}

PeerUser UserOfPeer(int connection, uid_t user) {
  const PeerOwner owner = OwnerOfPeer(connection);
  if (!owner.told) return PeerUser::kUnknown;
  return owner.user == user ? PeerUser::kSame : PeerUser::kAnother;
}

bool MayHaveListener(int port) {
  const auto wire = htons(static_cast<std::uint16_t>(port));
  return HasListener(AF_INET, wire).value_or(true) || HasListener(AF_INET6, wire).value_or(true);
}

}  // namespace dtrun
