"""Two network namespaces with one link between them.

    with Lab("1gbit") as lab:
        subprocess.run(["ip", "netns", "exec", lab.names[0], ...])

Namespaces are named after the process that made them. They are removed at the end of the `with` block, also on
SIGTERM. The next Lab removes those of killed processes.
"""

import os
import re
import signal
import subprocess
import time
from pathlib import Path

DEVICE = "link0"  # in both namespaces
# Backend options that select only that device.
OPTIONS = {"gloo": [f"interface={DEVICE}"], "ucx": [f"devices={DEVICE}", "transports=tcp"]}


def run(*words):
    subprocess.run([str(word) for word in words], check=True)


def remove_orphans():
    listing = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    for name, pid in re.findall(r"^(dtrun-lab-(\d+)-\d)\b", listing, re.M):
        if not os.path.exists(f"/proc/{pid}"):
            run("ip", "netns", "del", name)


class Lab:
    network = "10.77.0.0/24"
    addresses = ["10.77.0.1", "10.77.0.2"]

    def __init__(self, rate):
        """rate: of each direction, as tc writes it ("1gbit"); "none": not limited."""
        self.rate = rate
        self.prefix = f"dtrun-lab-{os.getpid()}-"
        self.names = [self.prefix + "0", self.prefix + "1"]

    def __enter__(self):
        remove_orphans()
        signal.signal(signal.SIGTERM, lambda *_: exit(128 + signal.SIGTERM))  # unwinds the with block
        try:
            self.make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def make(self):
        for name in self.names:
            run("ip", "netns", "add", name)
        run("ip", "link", "add", DEVICE, "netns", self.names[0], "type", "veth",
            "peer", "name", DEVICE, "netns", self.names[1])
        for name, address in zip(self.names, self.addresses):
            run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", DEVICE)
            run("ip", "-n", name, "link", "set", "lo", "up")
            run("ip", "-n", name, "link", "set", DEVICE, "up")
            if self.rate != "none":
                run("tc", "-n", name, "qdisc", "add", "dev", DEVICE, "root", "tbf", "rate", self.rate,
                    "burst", "256kb", "latency", "20ms")
        self.wait_until_up()

    def wait_until_up(self):
        deadline = time.monotonic() + 10
        for name in self.names:
            while "state UP" not in subprocess.run(["ip", "-n", name, "link", "show", DEVICE],
                                                   capture_output=True, text=True, check=True).stdout:
                if time.monotonic() > deadline:
                    raise SystemExit(f"{DEVICE} in namespace '{name}' did not come up within 10 s")
                time.sleep(0.01)

    def enter(self, side):
        """The command prefix that starts a program in one of the two."""
        return ["ip", "netns", "exec", self.names[side]]

    def mpirun(self, folder):
        """mpirun in the first one, with a rank in each; writes its substitute for ssh into `folder`."""
        agent = Path(folder) / "enter"
        agent.write_text(f'#!/bin/sh\nshift  # the host\nexec {" ".join(self.enter(1))} sh -c "$*"\n')
        agent.chmod(0o755)
        return [*self.enter(0), "mpirun", "--host", ",".join(self.addresses), "--mca", "plm_rsh_agent", str(agent),
                "--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", self.network,
                "--mca", "oob_tcp_if_include", self.network]

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL)  # may not exist yet
