// Asks the kernel: links, addresses and routes over netlink; speed and bus address through ethtool's ioctl.
// Sysfs would show the network namespace that it was mounted in.
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/route/addr.h>
#include <netlink/route/link.h>
#include <netlink/route/route.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <memory>

#include "core/base/fd.h"
#include "core/network/interface.h"

namespace dtrun::network {
namespace {

using Socket = std::unique_ptr<nl_sock, decltype(&nl_socket_free)>;

Error NetlinkError(const char* action, int code) {
  return Error::Of(DTRUN_SYSTEM, "{}: {}", action, nl_geterror(code));
}

// Passes every object of a netlink dump to `each`.
Status ForEach(const char* action, const std::function<int(nl_cache**)>& dump,
               const std::function<void(nl_object*)>& each) {
  nl_cache* raw = nullptr;
  if (const int code = dump(&raw); code < 0) return NetlinkError(action, code);
  const std::unique_ptr<nl_cache, decltype(&nl_cache_free)> cache(raw, nl_cache_free);
  for (nl_object* one = nl_cache_get_first(raw); one != nullptr; one = nl_cache_get_next(one)) each(one);
  return {};
}

// Runs an ethtool ioctl for the interface `name`; false if the driver does not support it.
template <class Wanted>
bool Ask(int socket, const std::string& name, Wanted* wanted) {
  ifreq request{};
  name.copy(request.ifr_name, sizeof request.ifr_name - 1);
  request.ifr_data = reinterpret_cast<char*>(wanted);
  return ::ioctl(socket, SIOCETHTOOL, &request) == 0;
}

std::string BusOf(int socket, const std::string& name) {
  ethtool_drvinfo info{};
  info.cmd = ETHTOOL_GDRVINFO;
  if (!Ask(socket, name, &info)) return {};
  const std::string bus(info.bus_info, ::strnlen(info.bus_info, sizeof info.bus_info));
  return bus == "N/A" ? "" : bus;
}

std::int64_t SpeedOf(int socket, const std::string& name) {
  ethtool_cmd command{};
  command.cmd = ETHTOOL_GSET;
  if (!Ask(socket, name, &command)) return 0;
  const auto speed = static_cast<std::int32_t>(ethtool_cmd_speed(&command));
  return std::max<std::int32_t>(speed, 0);
}

Interface Describe(rtnl_link* link, int ethtool) {
  Interface out;
  const unsigned flags = rtnl_link_get_flags(link);
  out.index = rtnl_link_get_ifindex(link);
  out.name = rtnl_link_get_name(link);
  const char* const type = rtnl_link_get_type(link);
  const std::string bus = BusOf(ethtool, out.name);
  // The driver of "tun" devices reports "tun" as their bus address, which is none.
  out.kind = KindOf(type == nullptr ? "" : type, (flags & IFF_LOOPBACK) != 0, bus);
  out.up = (flags & IFF_UP) != 0;
  out.carrier = out.up && (flags & IFF_RUNNING) != 0;
  out.mtu = static_cast<int>(rtnl_link_get_mtu(link));
  out.speed_mbps = SpeedOf(ethtool, out.name);
  out.rdma = RdmaPortOf("/sys", out.name, bus);
  return out;
}

// nullopt for unusable addresses: another address family, or duplicate address detection in progress.
std::optional<Address> Convert(rtnl_addr* address) {
  nl_addr* const local = rtnl_addr_get_local(address);
  if (local == nullptr || (rtnl_addr_get_flags(address) & (IFA_F_TENTATIVE | IFA_F_DADFAILED)) != 0)
    return {};
  Address out;
  if (nl_addr_get_family(local) == AF_INET) {
    asio::ip::address_v4::bytes_type bytes{};
    std::memcpy(bytes.data(), nl_addr_get_binary_addr(local), bytes.size());
    out.ip = asio::ip::address_v4(bytes);
  } else if (nl_addr_get_family(local) == AF_INET6) {
    asio::ip::address_v6::bytes_type bytes{};
    std::memcpy(bytes.data(), nl_addr_get_binary_addr(local), bytes.size());
    out.ip = asio::ip::address_v6(bytes);
  } else {
    return {};
  }
  out.prefix = rtnl_addr_get_prefixlen(address);
  return out;
}

// Interfaces that `route` leads through when it is a default route.
std::vector<int> DefaultThrough(rtnl_route* route) {
  std::vector<int> indices;
  nl_addr* const to = rtnl_route_get_dst(route);
  if (rtnl_route_get_type(route) != RTN_UNICAST || rtnl_route_get_table(route) != RT_TABLE_MAIN ||
      (to != nullptr && nl_addr_get_prefixlen(to) != 0)) {
    return indices;
  }
  for (int i = 0; i < rtnl_route_get_nnexthops(route); ++i) {
    indices.push_back(rtnl_route_nh_get_ifindex(rtnl_route_nexthop_n(route, i)));
  }
  return indices;
}

// Takes the alternative names from one message of a dump; libnl's link cache does not store them.
int AddOtherNames(nl_msg* message, void* interfaces) {
  auto& found = *static_cast<std::map<int, Interface>*>(interfaces);
  nlmsghdr* const header = nlmsg_hdr(message);
  const auto it = found.find(static_cast<const ifinfomsg*>(nlmsg_data(header))->ifi_index);
  nlattr* const list = nlmsg_find_attr(header, sizeof(ifinfomsg), IFLA_PROP_LIST);
  if (it == found.end() || list == nullptr) return NL_OK;
  nlattr* one = nullptr;
  int left = 0;
  nla_for_each_nested(one, list, left) {
    if (nla_type(one) == IFLA_ALT_IFNAME) it->second.other_names.emplace_back(nla_get_string(one));
  }
  return NL_OK;
}

Status ReadOtherNames(nl_sock* socket, std::map<int, Interface>* found) {
  ifinfomsg all{};
  nl_socket_modify_cb(socket, NL_CB_VALID, NL_CB_CUSTOM, AddOtherNames, found);
  int code = nl_send_simple(socket, RTM_GETLINK, NLM_F_DUMP, &all, sizeof all);
  if (code >= 0) code = nl_recvmsgs_default(socket);
  return code < 0 ? Status(NetlinkError("list other names of network interfaces", code)) : Status();
}

}  // namespace

Result<std::vector<Interface>> ReadInterfaces() {
  const Socket socket(nl_socket_alloc(), nl_socket_free);
  if (socket == nullptr) return NetlinkError("make a netlink socket", -NLE_NOMEM);
  if (const int code = nl_connect(socket.get(), NETLINK_ROUTE); code < 0) {
    return NetlinkError("ask the kernel for network interfaces", code);
  }
  const UniqueFd ethtool(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!ethtool) return Error::System("make a socket to ask for network interfaces", errno);

  std::map<int, Interface> found;
  Status read = ForEach(
      "list network interfaces",
      [&](nl_cache** out) { return rtnl_link_alloc_cache(socket.get(), AF_UNSPEC, out); },
      [&](nl_object* object) {
        Interface one = Describe(reinterpret_cast<rtnl_link*>(object), ethtool.get());
        const int index = one.index;
        found.emplace(index, std::move(one));
      });
  if (!read) return read.error();
  const auto with = [&](int index, const auto& change) {
    if (const auto it = found.find(index); it != found.end()) change(it->second);
  };
  read = ForEach(
      "list network addresses", [&](nl_cache** out) { return rtnl_addr_alloc_cache(socket.get(), out); },
      [&](nl_object* object) {
        auto* const raw = reinterpret_cast<rtnl_addr*>(object);
        if (const auto address = Convert(raw)) {
          with(rtnl_addr_get_ifindex(raw), [&](Interface& one) { one.addresses.push_back(*address); });
        }
      });
  if (!read) return read.error();
  read = ForEach(
      "list routes", [&](nl_cache** out) { return rtnl_route_alloc_cache(socket.get(), AF_UNSPEC, 0, out); },
      [&](nl_object* object) {
        for (const int index : DefaultThrough(reinterpret_cast<rtnl_route*>(object))) {
          with(index, [](Interface& one) { one.default_route = true; });
        }
      });
  if (!read) return read.error();
  // Must be the last use of the socket, because it changes the socket's callback.
  if (read = ReadOtherNames(socket.get(), &found); !read) return read.error();

  std::vector<Interface> all;
  for (auto& [index, one] : found) all.push_back(std::move(one));
  return all;
}

}  // namespace dtrun::network
