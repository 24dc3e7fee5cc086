"""Hosts with the networks that a test lays out: namespaces as in lab.py, without sshd.

    site = Site(folder, "10.5.0.{}")
    site.wire(0, "eth0", "red", "10.5.0.1/24")     # host 0, a cable to the switch "red"
    site.bridge(0, "docker0", "172.17.0.1/16")     # leads nowhere
    site.lay()

The kernel does the rest: every packet goes through veth pairs and bridges.
"""

import ctypes
import fcntl
import os
import socket
import struct
import subprocess
import sys
from pathlib import Path

from support.lab import Lab, die_with_parent, find, run

SIOCETHTOOL = 0x8946
# Commands of ethtool's ioctl: so that large sends are cut to the MTU here, as a real card does on the wire.
ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO = 0x1F, 0x24, 0x2C


class Site(Lab):
    def __init__(self, folder, addresses, count=3, loopback_names=False):
        """`addresses`: what the names stand for, "10.5.0.{}" with the number of the host from 1."""
        self.addresses, self.loopback_names = addresses, loopback_names
        self.made, self.configured, self.switched = {}, {}, []
        self.switches, self.ports, self.offloaded, self.rates = set(), 0, [], []
        super().__init__(folder, count)

    def build(self):
        (self.folder / "nsswitch").write_text("passwd: files\ngroup: files\nhosts: files\n")  # no name server
        common = self.folder / "hosts"
        common.write_text("127.0.0.1 localhost\n")
        self.switch = self.hold("switch", common)
        for i, name in enumerate(self.names):
            hosts = self.folder / f"hosts-{name}"
            hosts.write_text("127.0.0.1 localhost\n" + "".join(
                f"{self.stands_for(other, n == i)} {other}\n" for n, other in enumerate(self.names)))
            self.holders.append(self.hold(name, hosts))
            self.made[i], self.configured[i] = [], []

    def stands_for(self, name, own):
        # Debian's installer gives the own name an address of its own.
        return "127.0.1.1" if own and self.loopback_names else self.addresses.format(self.names.index(name) + 1)

    def wire(self, host, interface, switch, *addresses, mtu=1500, rate=None, rate_in=None, up=True, cable=True,
             offload=True):
        """A card with a cable to `switch`. `rate`: of what leaves, as tc writes it; `rate_in`: of what comes."""
        port = f"p{self.ports}"
        self.ports += 1
        self.made[host].append(f"link add {interface} mtu {mtu} type veth peer name {port} mtu {mtu} netns {self.switch}")
        self.join(switch)
        self.switched.append(f"link set {port} master {switch} {'up' if cable else 'down'}")
        if up:
            self.configured[host].append(f"link set {interface} up")
        for address in addresses:
            nodad = " nodad" if ":" in address else ""
            self.configured[host].append(f"address add {address} dev {interface}{nodad}")
        if not offload:
            self.offloaded.append((host, interface))
        if rate:
            self.rates.append((self.holders[host], interface, rate))
        if rate_in:
            self.rates.append((self.switch, port, rate_in))

    def join(self, switch, mtu=None):
        if switch not in self.switches:
            self.switches.add(switch)
            self.switched.append(f"link add {switch} type bridge")
            self.switched.append(f"link set {switch} up")
        if mtu:
            self.switched.append(f"link set {switch} mtu {mtu}")

    def narrow(self, switch, mtu):
        """Silently drops larger frames at the ports of `switch`."""
        self.switched += [line.split(" master ")[0] + f" mtu {mtu}" for line in self.switched
                          if f" master {switch} " in line]

    def router(self, addresses):
        """Joins switches: `addresses` of the router, by switch."""
        for switch, address in addresses.items():
            self.join(switch)
            self.switched.append(f"address add {address} dev {switch}")
        run("nsenter", "-t", str(self.switch), "-n", "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")

    def bridge(self, host, name, *addresses):
        """A bridge with a member, so that it has a carrier."""
        self.made[host] += [f"link add {name} type bridge", f"link set {name} up",
                            f"link add g-{name[-12:]} type veth peer name h-{name[-12:]}",
                            f"link set g-{name[-12:]} master {name} up", f"link set h-{name[-12:]} up"]
        for address in addresses:
            self.configured[host].append(f"address add {address} dev {name}")

    def route(self, host, *words):
        self.configured[host].append("route add " + " ".join(words))

    def more(self, host, line):
        """Any other line of `ip -batch`."""
        self.configured[host].append(line)

    def lay(self):
        for i, lines in self.made.items():
            self.batch(self.holders[i], lines)
        self.batch(self.switch, self.switched)
        for i, lines in self.configured.items():
            self.batch(self.holders[i], lines)
        for holder, interface, rate in self.rates:
            run("nsenter", "-t", str(holder), "-n", find("tc"), "qdisc", "add", "dev", interface, "root",
                "tbf", "rate", rate, "burst", "64kb", "latency", "50ms")
        for host, interface in self.offloaded:
            self.inside(host, "no_offload", interface)

    def batch(self, holder, lines):
        done = subprocess.run(["nsenter", "-t", str(holder), "-n", find("ip"), "-batch", "-"], input="\n".join(lines) + "\n",
                              capture_output=True, text=True)
        if done.returncode != 0:
            raise AssertionError(f"ip -batch: {done.stderr}\n" + "\n".join(lines))

    def firewall(self, host, *rules):
        """Rules of an nft chain on what comes in."""
        text = "table inet f {\n chain c {\n type filter hook input priority 0;\n" + "\n".join(rules) + "\n }\n}\n"
        done = subprocess.run(["nsenter", "-t", str(self.holders[host]), "-n", find("nft"), "-f", "-"], input=text,
                              capture_output=True, text=True)
        if done.returncode != 0:
            raise AssertionError(f"nft: {done.stderr}")

    def tunnel(self, host, name, address):
        """A tun device; its other end accepts every packet and sends none."""
        self.inside(host, "tunnel", name)
        self.configured[host] += [f"link set {name} up", f"address add {address} dev {name}"]

    def inside(self, host, role, interface):
        """Runs a role of this file in a host's network; returns once it says that it is ready."""
        process = subprocess.Popen(["nsenter", "-t", str(self.holders[host]), "-n", sys.executable, "-B", "-c",
                                    f"from support.site import {role}; {role}({interface!r})"],
                                   stdout=subprocess.PIPE, text=True, cwd=Path(__file__).resolve().parents[1],
                                   preexec_fn=die_with_parent)
        self.processes.append(process)
        with process.stdout as pipe:
            if pipe.readline() != "ready\n":
                raise AssertionError(f"{role} of {interface} on {self.names[host]} failed")


def no_offload(interface):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for command in (ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO):
            value = ctypes.create_string_buffer(struct.pack("II", command, 0))
            fcntl.ioctl(control, SIOCETHTOOL, struct.pack("16sP16x", interface.encode(), ctypes.addressof(value)))
    print("ready", flush=True)


def tunnel(name):
    device = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(device, 0x400454CA, struct.pack("16sH22x", name.encode(), 0x0001 | 0x1000))  # TUNSETIFF: tun, no header
    print("ready", flush=True)
    while True:
        os.read(device, 65536)
