"""A network between hosts: how it is laid out, and what is right in it.

Hosts are node0, node1 and so on; host i has the address .i+1 of each of its networks. `addresses` are those that
the hosts' names stand for, and where their agents meet. `expect` is the interface that every host has to use (a
list: one per host; a set: any of these), or None where no network joins all hosts: then `says` is what the user has
to read.
"""

from dataclasses import dataclass, field
from typing import Callable, Optional

NETWORK = "10.5.0"


@dataclass
class Topology:
    name: str
    lay: Callable
    expect: object
    addresses: str = NETWORK + ".{}"
    rule: Optional[str] = None  # network.interface
    rules: dict = field(default_factory=dict)  # network.interface_on
    env: dict = field(default_factory=dict)
    config: str = ""  # more of it
    sees: dict = field(default_factory=dict)  # by nccl, gloo or mpi, where ranks see the user's value
    says: tuple = ()  # texts of stderr
    loopback_names: bool = False


TOPOLOGIES = []


def topology(expect, **more):
    def register(lay):
        name = lay.__name__
        TOPOLOGIES.append(Topology(name, lay, expect, **more))
        return lay
    return register


def hosts(site):
    return range(len(site.names))


def plain(site, interface="eth0", switch="red", network=NETWORK, gateway=True, **more):
    for i in hosts(site):
        site.wire(i, interface, switch, f"{network}.{i + 1}/24", **more)
        if gateway:
            site.route(i, "default", "via", f"{network}.250")


def second(site, interface="eth1", **more):
    plain(site, interface, "blue", "10.6.0", gateway=False, **more)
