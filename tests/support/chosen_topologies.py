"""Networks in which the user has chosen an interface: by an option, a library's variable or the backend's option."""

from support.topology import NETWORK, hosts, plain, second, topology


@topology("eth0", rule="enp129s0f0np0-lan")
def an_alternative_name(site):
    plain(site)
    second(site)
    for i in hosts(site):
        site.more(i, "link property add dev eth0 altname enp129s0f0np0-lan")


@topology(None, rule="etg0", says=("network.interface: host node", "'etg0' is not an interface of this host",
                                   "eth0 (10.5.0.", "did you mean 'eth0'?"))
def a_name_with_a_slip(site):
    plain(site)


@topology(None, rule="eth0,enp7s9", says=("no host has an interface 'enp7s9'",))
def a_name_that_no_host_has(site):
    plain(site)


@topology(None, rule="^eth", says=("leaves no interface", "eth0 is excluded by '^eth'", "docker0 is a virtual bridge"))
def an_exclusion_that_leaves_nothing(site):
    for i in hosts(site):
        site.bridge(i, "docker0", "172.17.0.1/16")
    plain(site)


@topology("eth1", rule="^eth0")
def an_exclusion_adds_to_the_built_in_ones(site):
    for i in hosts(site):
        site.bridge(i, "docker0", "172.17.0.1/16")
    plain(site)
    second(site, rate="50mbit")


@topology("eth1", rule="10.6.0.0/16")
def a_network_by_its_address(site):
    plain(site)
    second(site, rate="50mbit")


@topology(["eth0", "ens3", "eth0"], rule="=eth0", rules={"node1": "ens3"})
def a_name_of_its_own_for_one_host(site):
    for i, name in enumerate(["eth0", "ens3", "eth0"]):
        site.wire(i, name, "red", f"{NETWORK}.{i + 1}/24")
    second(site, "eth9")


@topology("eth0", env={"NCCL_SOCKET_IFNAME": "docker0"}, sees={"nccl": "docker0"},
          says=("NCCL_SOCKET_IFNAME=docker0 is yours and is kept; dtrun would set =eth0",
                "on node0, node1, node2 it means docker0 there, which is a virtual bridge of this host"))
def a_value_of_the_users_that_cannot_work(site):
    for i in hosts(site):
        site.bridge(i, "docker0", "172.17.0.1/16")
    plain(site)


@topology("eth0", env={"GLOO_SOCKET_IFNAME": "eth9", "UCX_NET_DEVICES": "eth9", "OMPI_MCA_btl_tcp_if_exclude": "lo,eth0"},
          sees={"gloo": "eth9", "mpi": ""},
          says=("GLOO_SOCKET_IFNAME=eth9 is yours and is kept; dtrun would set eth0; on node0, node1, node2 it means eth9 "
                "there, which is not known to reach all hosts",
                "UCX_NET_DEVICES=eth9 is yours and is kept; dtrun would set eth0; on node0",
                "OMPI_MCA_btl_tcp_if_exclude=lo,eth0 is yours and is kept; dtrun would set OMPI_MCA_btl_tcp_if_include=eth0, "
                "which conflicts with it; on node0"))
def values_of_the_users_for_every_library(site):
    for i in hosts(site):
        site.wire(i, "eth9", f"lonely{i}", f"10.9.0.{i + 1}/24")
    plain(site)


@topology("eth0", config='[backend]\nname = "gloo"\noptions.interface = "eth1"\n', sees={"gloo": "eth1"},
          says=("GLOO_SOCKET_IFNAME=eth1 is what backend.options say and is kept; dtrun would set eth0\n",))
def an_interface_that_the_backend_is_told(site):
    plain(site)
    second(site, rate="50mbit")
