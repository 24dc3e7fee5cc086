#include "core/network/route.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include <array>
#include <cstring>

#include "core/base/fd.h"

namespace dtrun::network {
namespace {

struct RouteRequest {
  nlmsghdr header{};
  rtmsg route{};
  std::array<char, 2 * RTA_SPACE(sizeof(in6_addr))> attributes{};
};

void AddAddress(RouteRequest* request, unsigned short type, const Ip& ip) {
  const auto add = [&](const auto& bytes) {
    auto* const attribute =
        reinterpret_cast<rtattr*>(reinterpret_cast<char*>(request) + request->header.nlmsg_len);
    attribute->rta_type = type;
    attribute->rta_len = static_cast<unsigned short>(RTA_LENGTH(bytes.size()));
    std::memcpy(RTA_DATA(attribute), bytes.data(), bytes.size());
    request->header.nlmsg_len += static_cast<std::uint32_t>(RTA_SPACE(bytes.size()));
  };
  ip.is_v6() ? add(ip.to_v6().to_bytes()) : add(ip.to_v4().to_bytes());
}

// The index of the interface in the kernel's answer; 0: it has none.
int OutOf(char* answer, std::size_t size) {
  auto* const header = reinterpret_cast<nlmsghdr*>(answer);
  if (!NLMSG_OK(header, size) || header->nlmsg_type != RTM_NEWROUTE) return 0;
  auto* const route = static_cast<rtmsg*>(NLMSG_DATA(header));
  auto left = static_cast<int>(RTM_PAYLOAD(header));
  for (rtattr* one = RTM_RTA(route); RTA_OK(one, left); one = RTA_NEXT(one, left)) {
    int index = 0;
    if (one->rta_type != RTA_OIF || RTA_PAYLOAD(one) != sizeof index) continue;
    std::memcpy(&index, RTA_DATA(one), sizeof index);
    return index;
  }
  return 0;
}

}  // namespace

std::string LeavesBy(const Candidate& from, const Ip& to) {
  if (from.kind == Kind::kLoopback || from.address.link_local()) return {};
  const UniqueFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!socket) return {};
  RouteRequest request;
  request.header.nlmsg_len = NLMSG_LENGTH(sizeof(rtmsg));
  request.header.nlmsg_type = RTM_GETROUTE;
  request.header.nlmsg_flags = NLM_F_REQUEST;
  request.route.rtm_family = to.is_v6() ? AF_INET6 : AF_INET;
  request.route.rtm_dst_len = request.route.rtm_src_len = to.is_v6() ? 128 : 32;
  AddAddress(&request, RTA_DST, to);
  AddAddress(&request, RTA_SRC, from.address.ip);
  if (::send(socket.get(), &request, request.header.nlmsg_len, 0) < 0) return {};
  alignas(nlmsghdr) std::array<char, 4096> answer{};
  const ssize_t size =
      ::recv(socket.get(), answer.data(), answer.size(), 0);  // the kernel has already answered
  const int index = size > 0 ? OutOf(answer.data(), static_cast<std::size_t>(size)) : 0;
  std::array<char, IF_NAMESIZE> name{};
  if (index == 0 || index == from.index) return {};
  return ::if_indextoname(static_cast<unsigned>(index), name.data()) == nullptr ? "" : name.data();
}

}  // namespace dtrun::network
