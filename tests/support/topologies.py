"""The networks in which users' jobs fail, as a list: how each is laid out, and what is right in it.

Those where the user has chosen an interface are in chosen_topologies.py, and in the list too.
"""

import support.chosen_topologies  # adds to TOPOLOGIES
from support.topology import NETWORK, TOPOLOGIES, hosts, plain, second, topology


@topology("eth0")
def one_network(site):
    plain(site)


@topology("eth0")
def no_default_route(site):
    plain(site, gateway=False)


@topology("eth0")
def docker0_with_one_address_everywhere(site):
    for i in hosts(site):
        site.bridge(i, "docker0", "172.17.0.1/16")
    plain(site)


@topology("eth0")
def docker_network_of_the_user(site):
    for i in hosts(site):
        site.bridge(i, "br-3f2a9c", "172.18.0.1/16")
    plain(site)


@topology("eth0")
def virbr0_with_one_address_everywhere(site):
    for i in hosts(site):
        site.bridge(i, "virbr0", "192.168.122.1/24")
    plain(site)


@topology("eth0")
def bridges_with_own_addresses(site):
    # A pod network per host, as CNI plugins make them: every address is different, none can be reached.
    for i in hosts(site):
        site.bridge(i, "kube-bridge", f"10.244.{i}.1/24")
    plain(site)


@topology("eth0")
def one_subnet_for_bridges_that_are_not_joined(site):
    for i in hosts(site):
        site.bridge(i, "br0", f"192.168.50.{i + 1}/24")
    plain(site)


@topology("br0")
def the_hosts_own_bridge(site):
    # As on hosts for virtual machines: the card is a port of br0, which has the address.
    for i in hosts(site):
        site.wire(i, "eth0", "red")
        site.made[i].append("link add br0 type bridge")
        site.more(i, "link set eth0 master br0")
        site.more(i, "link set br0 up")
        site.more(i, f"address add {NETWORK}.{i + 1}/24 dev br0")
        site.route(i, "default", "via", f"{NETWORK}.250")


@topology("eth1")
def the_second_card_is_faster(site):
    plain(site, rate="50mbit")
    second(site)


@topology("eth0")
def the_first_card_is_faster(site):
    plain(site)
    second(site, rate="50mbit")


@topology("eth0")
def the_faster_card_loses_packets(site):
    plain(site, rate="200mbit")
    second(site)
    for i in hosts(site):
        site.firewall(i, 'iifname "eth1" numgen random mod 100 < 10 drop')


@topology("eth0", says=("packets get lost: ", " % from eth0 of node0 to eth0 of node1"))
def the_only_network_loses_packets(site):
    plain(site)
    site.firewall(1, 'iifname "eth0" numgen random mod 100 < 10 drop')


@topology("eth0", says=("warning    node1 is the slow host: ", " Mbit/s by its eth0"))
def a_host_with_a_slow_port(site):
    for i in hosts(site):
        site.wire(i, "eth0", "red", f"{NETWORK}.{i + 1}/24", **({"rate": "1mbit", "rate_in": "1mbit"} if i == 1 else {}))


@topology({"eth0", "eth1"})
def two_cards_in_one_subnet(site):
    plain(site)
    for i in hosts(site):
        site.wire(i, "eth1", "red", f"{NETWORK}.{i + 101}/24")


@topology("eth1", rule="eth1", says=("warning    packets from eth1 192.168.5.1 of node0 to node1 leave by eth0",
                                     "ip rule add from 192.168.5.1 table 100", "packets leave by eth0, "))
def two_cards_with_overlapping_networks(site):
    for i in hosts(site):
        site.wire(i, "eth0", "red", f"192.168.3.{i + 1}/20", f"{NETWORK}.{i + 1}/24")
        site.wire(i, "eth1", "blue", f"192.168.5.{i + 1}/20")


@topology("eth0")
def two_cards_with_overlapping_networks_and_none_is_named(site):
    two_cards_with_overlapping_networks(site)


# A name means its first address to these libraries, so they get none.
UNNAMED = {"nccl": None, "gloo": None, "mpi": f"{NETWORK}.0/24"}


@topology("eth0", sees=UNNAMED)
def a_first_address_that_joins_nobody(site):
    for i in hosts(site):
        site.wire(i, "eth0", "red", f"203.0.{113 + i}.10/24", f"{NETWORK}.{i + 1}/24")


@topology("eth0", sees=UNNAMED)
def a_first_address_that_all_hosts_have(site):
    for i in hosts(site):
        site.wire(i, "eth0", "red", "10.99.0.100/32", f"{NETWORK}.{i + 1}/24")


@topology("eth0", rule="^203.0.0.0/16", sees=UNNAMED)
def an_address_that_is_excluded(site):
    a_first_address_that_joins_nobody(site)


@topology(["eth0", "ens3", "enp1s0"])
def names_that_differ(site):
    for i, name in enumerate(["eth0", "ens3", "enp1s0"]):
        site.wire(i, name, "red", f"{NETWORK}.{i + 1}/24")
        site.route(i, "default", "via", f"{NETWORK}.250")


@topology(["eth0", "eth1", "eth0"])
def names_that_are_swapped(site):
    for i in hosts(site):
        good, other = ("eth1", "eth0") if i == 1 else ("eth0", "eth1")
        site.wire(i, good, "red", f"{NETWORK}.{i + 1}/24")
        site.wire(i, other, f"lonely{i}", f"10.6.0.{i + 1}/24")


@topology("eth0", loopback_names=True)
def own_name_is_127_0_1_1(site):
    plain(site)


@topology("eth0", addresses="fd00:5::{}")
def ipv6_only(site):
    for i in hosts(site):
        site.wire(i, "eth0", "red", f"fd00:5::{i + 1}/64")


@topology("eth0")
def ipv6_that_leads_nowhere(site):
    for i in hosts(site):
        site.wire(i, "eth1", f"lonely{i}", f"fd00:6::{i + 1}/64")
    plain(site)


@topology("eth0", addresses="169.254.5.{}")
def link_local_ipv4_only(site):
    for i in hosts(site):
        site.wire(i, "eth0", "red", f"169.254.5.{i + 1}/16")


@topology("eth0")
def vpn_that_does_not_reach_the_others(site):
    for i in hosts(site):
        site.tunnel(i, "tun0", f"10.8.0.{i + 1}/24")
    plain(site)


@topology("eth0")
def overlay_on_top_of_the_network(site):
    for i in hosts(site):
        site.more(i, f"link add vx0 type vxlan id 7 local {NETWORK}.{i + 1} group 239.1.1.1 dev eth0 dstport 4789")
        site.more(i, f"address add 10.9.0.{i + 1}/24 dev vx0")
        site.more(i, "link set vx0 up")
    plain(site, gateway=False)
    for i in hosts(site):  # its lines need eth0 first
        site.configured[i] = site.configured[i][3:] + site.configured[i][:3]


@topology("eth0", rule="eth0")
def a_vlan_has_the_name_of_its_card_in_front(site):
    plain(site)
    second(site, "eth0.100")


@topology("eth0")
def twenty_networks_that_lead_nowhere(site):
    for i in hosts(site):
        for n in range(20):
            site.wire(i, f"nic{n}", f"lonely{i}", f"10.{100 + n}.0.{i + 1}/24")
    plain(site)


@topology("eth0")
def twenty_docker_networks(site):
    for i in hosts(site):
        for n in range(20):
            site.bridge(i, f"br-{n:02d}", f"172.{18 + n}.0.1/16")
    plain(site)


@topology("eth0")
def a_network_that_joins_two_of_three(site):
    plain(site)
    for i in (0, 1):
        site.wire(i, "eth1", "blue", f"10.6.0.{i + 1}/24")


@topology("eth0")
def an_interface_that_is_down_on_one_host(site):
    plain(site)
    for i in hosts(site):
        site.wire(i, "eth1", "blue", f"10.6.0.{i + 1}/24", up=i != 2)


@topology("eth0")
def a_cable_that_is_unplugged(site):
    plain(site)
    for i in hosts(site):
        site.wire(i, "eth1", "blue", f"10.6.0.{i + 1}/24", cable=i != 1)


@topology("eth0")
def a_firewall_that_lets_in_nobody(site):
    plain(site, rate="200mbit")
    second(site)
    site.firewall(1, 'iifname "eth1" tcp flags & (syn | ack) == syn drop')


@topology("eth1")
def first_packets_that_get_lost(site):
    plain(site, rate="50mbit")
    second(site)
    for i in hosts(site):
        site.firewall(i, *(f'iifname "eth1" ip saddr 10.6.0.{other + 1} tcp flags & (syn | ack) == syn quota until 100 bytes drop'
                           for other in hosts(site) if other != i))


@topology(None, says=("node0 eth0 10.5.0.1 to node1 eth0 10.5.0.2: no answer", "cannot reach each other in both directions"))
def a_firewall_on_the_only_network(site):
    plain(site)
    site.firewall(1, 'iifname "eth0" tcp flags & (syn | ack) == syn drop')


@topology("eth0")
def jumbo_frames_that_get_lost(site):
    plain(site, rate="200mbit")
    for i in hosts(site):
        site.wire(i, "eth1", "blue", f"10.6.0.{i + 1}/24", mtu=9000, offload=False)
    site.narrow("blue", 1500)


@topology(None, says=("small messages pass, large ones do not", "set the MTU of both interfaces, 9000 here"))
def jumbo_frames_that_get_lost_on_the_only_network(site):
    plain(site, mtu=9000, offload=False)
    site.narrow("red", 1500)


@topology("eth0", addresses="10.5.{}.1")
def a_router_between_the_hosts(site):
    site.router({f"net{i}": f"10.5.{i + 1}.254/24" for i in hosts(site)})
    for i in hosts(site):
        site.bridge(i, "docker0", "172.17.0.1/16")
        site.wire(i, "eth0", f"net{i}", f"10.5.{i + 1}.1/24")
        site.route(i, "default", "via", f"10.5.{i + 1}.254")


@topology(None, addresses="172.17.{}.1",
          says=("docker0 of node", "(172.17.0.1/16) has 172.17.", "give that bridge another network"))
def a_docker_network_around_those_of_the_hosts(site):
    site.router({f"net{i}": f"172.17.{i + 1}.254/24" for i in hosts(site)})
    for i in hosts(site):
        site.wire(i, "eth0", f"net{i}", f"172.17.{i + 1}.1/24")
        site.route(i, "default", "via", f"172.17.{i + 1}.254")
        site.bridge(i, "docker0", "172.17.0.1/16")
        for j in hosts(site):  # agents reach the root, as by the connection that started them
            if 0 in (i, j) and i != j:
                site.route(i, f"172.17.{j + 1}.1/32", "via", f"172.17.{i + 1}.254")


@topology("eth0")
def one_address_on_two_hosts(site):
    plain(site)
    for i in hosts(site):
        site.wire(i, "eth1", "blue", "10.6.0.1/24" if i < 2 else "10.6.0.3/24")


@topology(None, rule="eth1", says=("10.6.0.1 is the address of node0 (eth1) and of node1 (eth1)",
                                   "give every host an address of its own"))
def one_address_on_two_hosts_of_the_only_network(site):
    plain(site)
    for i in hosts(site):
        site.wire(i, "eth1", "blue", "10.6.0.1/24" if i < 2 else "10.6.0.3/24")


@topology("lan,0")
def a_name_with_a_comma(site):
    plain(site, interface="lan,0")


@topology("^lan")
def a_name_that_begins_like_an_exclusion(site):
    plain(site, interface="^lan")


@topology("eth0")
def a_second_address_that_moves(site):
    plain(site)
    for i in (0, 1):  # two hosts believe that it is theirs, as after a failover
        site.more(i, f"address add {NETWORK}.100/24 dev eth0")


@topology("lo", addresses="10.99.0.{}")
def addresses_on_loopback_that_are_routed(site):
    for i in hosts(site):
        site.wire(i, "eth0", "red")
        site.more(i, f"address add 10.99.0.{i + 1}/32 dev lo")
        for other in hosts(site):
            if other != i:
                site.route(i, f"10.99.0.{other + 1}/32", "dev", "eth0", "src", f"10.99.0.{i + 1}")


@topology("eth1", rule="eth1", addresses="10.6.0.{}")
def eth10_begins_with_eth1(site):
    for i in hosts(site):
        site.wire(i, "eth10", f"lonely{i}", f"10.7.0.{i + 1}/24")
    second(site)


@topology(None, addresses="fe80::5:{}%eth0",
          says=("eth0 has only link-local IPv6 addresses, which other hosts cannot use",))
def link_local_ipv6_only(site):
    for i in hosts(site):
        site.wire(i, "eth0", "red", f"fe80::5:{i + 1}/64")


@topology("eth10", addresses="10.6.0.{}")
def only_eth10_joins(site):
    for i in hosts(site):
        site.wire(i, "eth1", f"lonely{i}", f"10.7.0.{i + 1}/24")
    second(site, "eth10")


@topology("eth0")
def vpn_with_the_default_route(site):
    for i in hosts(site):
        site.tunnel(i, "tun0", f"10.8.{i}.2/24")
        site.wire(i, "eth0", "red", f"{NETWORK}.{i + 1}/24")
        site.route(i, "default", "dev", "tun0")
