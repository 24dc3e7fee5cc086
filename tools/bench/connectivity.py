#!/usr/bin/env python3
"""Time for dtrun to find the network between hosts (core/network), and its cost for a job.

    tools/bench/connectivity.py [--hosts 3,32,40] [--networks 1,2] [--rounds 5] [--lost]

Hosts are network namespaces of this machine, each with its own dtrun. They share the processors, so many hosts
are slower here than in reality. They also share the kernel's neighbour table of 1024 entries, which is enlarged
while this runs. A round is a job of one `true` per host with network.interface = "auto", then one with "off".
With two networks the first carries 1 Gbit/s. --lost: the second network silently drops every packet. Needs root.
"""

import argparse
import contextlib
import json
import secrets
import subprocess
import tempfile
import time
from pathlib import Path

from measure import DTRUN, environment, print_header, table
from support.site import Site

PHASES = ("survey", "connectivity", "measurement", "total")
NEIGHBOURS = Path("/proc/sys/net/ipv4/neigh/default")


@contextlib.contextmanager
def room_for_neighbours(places=65536):
    files = [NEIGHBOURS / f"gc_thresh{i}" for i in (3, 2, 1)]
    before = [file.read_text() for file in files]
    try:
        for file in files:
            file.write_text(str(places))
        yield
    finally:
        for file, value in zip(reversed(files), reversed(before)):
            file.write_text(value)


def lay(folder, hosts, networks, lost):
    site = Site(folder, "10.5.0.{}", hosts)
    for i in range(hosts):
        site.wire(i, "eth0", "red", f"10.5.0.{i + 1}/24", rate="1gbit" if networks == 2 else None)
        for n in range(1, networks):
            site.wire(i, f"eth{n}", f"blue{n}", f"10.6.{n}.{i + 1}/24")
    site.lay()
    if lost:
        for i in range(hosts):
            site.firewall(i, 'iifname "eth1" drop')
    return site


def job(site, folder, interface):
    """Seconds for the job, and the report of the connectivity check; None without one."""
    key = folder / "key"
    key.write_text(secrets.token_hex(32))
    key.chmod(0o600)
    config = folder / "job.toml"
    runs = folder / f"run-{time.monotonic_ns()}"
    config.write_text(
        f'[job]\ncommand = ["true"]\n[cluster]\nhosts = {json.dumps(site.names)}\nconnect = "manual"\n'
        f'root = "10.5.0.1:29400"\nkey_file = "{key}"\njoin_timeout = "60s"\n[network]\ninterface = "{interface}"\n'
        f'[logs]\ndir = "{runs}"\n')
    begin = time.monotonic()
    processes = [subprocess.Popen([*site.enter(i, folder), DTRUN, "--config", config, "--host-index", str(i)],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                  env=environment()) for i in reversed(range(len(site.names)))]
    err = processes[-1].communicate()[1]
    took = time.monotonic() - begin
    for process in processes[:-1]:
        process.communicate()
    if processes[-1].returncode != 0:
        raise SystemExit(f"the job failed:\n{err}")
    record = runs / "network.json"
    return took, json.loads(record.read_text()) if record.exists() else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", default="3,32,40")
    parser.add_argument("--networks", default="1,2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--lost", action="store_true")
    options = parser.parse_args()
    print_header(None)
    checks, jobs = [], []
    for hosts in map(int, options.hosts.split(",")):
        for networks in map(int, options.networks.split(",")):
            what = f"{hosts} hosts, {networks} network{'s' if networks > 1 else ''}"
            with tempfile.TemporaryDirectory(prefix="dtrun-site-") as name, room_for_neighbours():
                site = lay(name, hosts, networks, options.lost and networks > 1)
                times = {"auto": [], "off": [], **{phase: [] for phase in PHASES}}
                try:
                    for _ in range(options.rounds):
                        for interface in ("auto", "off"):
                            took, record = job(site, Path(name), interface)
                            times[interface].append(took)
                            for phase in PHASES if record else ():
                                times[phase].append(record["time_ms"][phase])
                finally:
                    site.close()
            checks += [(what, phase, times[phase]) for phase in PHASES]
            jobs += [(what, f'interface = "{interface}"', times[interface]) for interface in ("off", "auto")]
    table("The network is found", checks, "ms")
    table("The job", jobs, "s")


if __name__ == "__main__":
    main()
