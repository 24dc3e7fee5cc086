// libnl, which queries interfaces, addresses and routes. Jobs on one host never load it.
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/route/addr.h>
#include <netlink/route/link.h>
#include <netlink/route/route.h>

#include "core/late/late_library.h"

namespace {

constinit dtrun::late::Library netlink("libnl-3.so.200", "libnl-3-200");
constinit dtrun::late::Library route("libnl-route-3.so.200", "libnl-route-3-200");

}  // namespace

extern "C" {

DTRUN_LATE(netlink, void*, nl_addr_get_binary_addr, (const nl_addr* a), (a))
DTRUN_LATE(netlink, int, nl_addr_get_family, (const nl_addr* a), (a))
DTRUN_LATE(netlink, unsigned, nl_addr_get_prefixlen, (const nl_addr* a), (a))
DTRUN_LATE(netlink, void, nl_cache_free, (nl_cache * a), (a))
DTRUN_LATE(netlink, nl_object*, nl_cache_get_first, (nl_cache * a), (a))
DTRUN_LATE(netlink, nl_object*, nl_cache_get_next, (nl_object * a), (a))
DTRUN_LATE(netlink, int, nl_connect, (nl_sock * a, int b), (a, b))
DTRUN_LATE(netlink, const char*, nl_geterror, (int a), (a))
DTRUN_LATE(netlink, int, nl_recvmsgs_default, (nl_sock * a), (a))
DTRUN_LATE(netlink, int, nl_send_simple, (nl_sock * a, int b, int c, void* d, size_t e), (a, b, c, d, e))
DTRUN_LATE(netlink, nl_sock*, nl_socket_alloc, (), ())
DTRUN_LATE(netlink, void, nl_socket_free, (nl_sock * a), (a))
DTRUN_LATE(netlink, int, nl_socket_modify_cb,
           (nl_sock * a, nl_cb_type b, nl_cb_kind c, nl_recvmsg_msg_cb_t d, void* e), (a, b, c, d, e))
DTRUN_LATE(netlink, void*, nla_data, (const nlattr* a), (a))
DTRUN_LATE(netlink, char*, nla_get_string, (const nlattr* a), (a))
DTRUN_LATE(netlink, int, nla_len, (const nlattr* a), (a))
DTRUN_LATE(netlink, nlattr*, nla_next, (const nlattr* a, int* b), (a, b))
DTRUN_LATE(netlink, int, nla_ok, (const nlattr* a, int b), (a, b))
DTRUN_LATE(netlink, int, nla_type, (const nlattr* a), (a))
DTRUN_LATE(netlink, void*, nlmsg_data, (const nlmsghdr* a), (a))
DTRUN_LATE(netlink, nlattr*, nlmsg_find_attr, (nlmsghdr * a, int b, int c), (a, b, c))
DTRUN_LATE(netlink, nlmsghdr*, nlmsg_hdr, (nl_msg * a), (a))

DTRUN_LATE(route, int, rtnl_addr_alloc_cache, (nl_sock * a, nl_cache** b), (a, b))
DTRUN_LATE(route, unsigned, rtnl_addr_get_flags, (rtnl_addr * a), (a))
DTRUN_LATE(route, int, rtnl_addr_get_ifindex, (rtnl_addr * a), (a))
DTRUN_LATE(route, nl_addr*, rtnl_addr_get_local, (rtnl_addr * a), (a))
DTRUN_LATE(route, int, rtnl_addr_get_prefixlen, (rtnl_addr * a), (a))
DTRUN_LATE(route, int, rtnl_link_alloc_cache, (nl_sock * a, int b, nl_cache** c), (a, b, c))
DTRUN_LATE(route, unsigned, rtnl_link_get_flags, (rtnl_link * a), (a))
DTRUN_LATE(route, int, rtnl_link_get_ifindex, (rtnl_link * a), (a))
DTRUN_LATE(route, unsigned, rtnl_link_get_mtu, (rtnl_link * a), (a))
DTRUN_LATE(route, char*, rtnl_link_get_name, (rtnl_link * a), (a))
DTRUN_LATE(route, char*, rtnl_link_get_type, (rtnl_link * a), (a))
DTRUN_LATE(route, int, rtnl_route_alloc_cache, (nl_sock * a, int b, int c, nl_cache** d), (a, b, c, d))
DTRUN_LATE(route, nl_addr*, rtnl_route_get_dst, (rtnl_route * a), (a))
DTRUN_LATE(route, int, rtnl_route_get_nnexthops, (rtnl_route * a), (a))
DTRUN_LATE(route, uint32_t, rtnl_route_get_table, (rtnl_route * a), (a))
DTRUN_LATE(route, uint8_t, rtnl_route_get_type, (rtnl_route * a), (a))
DTRUN_LATE(route, rtnl_nexthop*, rtnl_route_nexthop_n, (rtnl_route * a, int b), (a, b))
DTRUN_LATE(route, int, rtnl_route_nh_get_ifindex, (rtnl_nexthop * a), (a))

}  // extern "C"
