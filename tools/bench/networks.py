#!/usr/bin/env python3
"""The behaviour of stock libraries in the networks of tests/support/topologies.py, as a Markdown table.

    tools/bench/networks.py [--nccl libnccl.so.2] [WORD ...]

Three hosts per network, one process per host, started as users do: Open MPI by mpirun, Gloo by torch with MASTER_ADDR
= the first host's name, NCCL by requesting a unique id, which holds the address that it chose. Their variables are
not set. A failure is tried again once, in a newly created network. Load makes a library slower, never better, so the
better result counts. WORD selects topologies by a part of their names. Needs root.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import measure  # noqa: F401  (finds `support`)
from support.site import Site
from support.topologies import TOPOLOGIES

PATIENCE_S = 40  # import of torch on a busy machine
NO_RESULT = f"no result in {PATIENCE_S} s"
BETTER = ["trains", "fails", NO_RESULT]
ALLREDUCE_MPI = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char** argv) {
  int rank, count = 1 << 18;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int* data = calloc(count, sizeof *data);
  for (int i = 0; i < count; ++i) data[i] = rank + 1;
  MPI_Allreduce(MPI_IN_PLACE, data, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  printf("sum %d\n", data[count - 1]);
  MPI_Finalize();
}
"""
ALLREDUCE_TORCH = """
import datetime, sys, torch, torch.distributed as dist
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=20))
data = torch.full((1 << 18,), dist.get_rank() + 1)
dist.all_reduce(data)
print("sum", int(data[-1]))
"""
NCCL_ADDRESS = """
import ctypes, ipaddress, os, sys
class Id(ctypes.Structure): _fields_ = [("bytes", ctypes.c_char * 128)]
one = Id()
result = ctypes.CDLL(sys.argv[1]).ncclGetUniqueId(ctypes.byref(one))
raw = bytes(bytearray(ctypes.string_at(ctypes.addressof(one), 128)))
family = int.from_bytes(raw[8:10], "little")
address = raw[12:16] if family == 2 else raw[16:32]
print(result, ipaddress.ip_address(address) if result == 0 else "none", flush=True)
os._exit(0)
"""
CLEAN = {name: value for name, value in os.environ.items()
         if not name.startswith(("NCCL_", "GLOO_", "OMPI_", "UCX_", "TP_"))}


def ended(process, deadline):
    try:
        out, err = process.communicate(timeout=max(0.1, deadline - time.monotonic()))
        return process.returncode, out, err
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return None, "", ""


def verdict(ends, count):
    if any(code is None for code, _, _ in ends):
        return NO_RESULT
    good = sum(out.count("sum 6") for _, out, _ in ends)
    return "trains" if good == count else "fails"


def open_mpi(site, folder):
    agent = folder / "agent"
    agent.write_text("#!/bin/sh\nname=$1; shift\ncase $name in\n" + "".join(
        f"{name}) exec {' '.join(site.enter(i))} sh -c \"$*\" ;;\n" for i, name in enumerate(site.names)) + "esac\n")
    agent.chmod(0o755)
    process = subprocess.Popen(
        [*site.enter(0), "mpirun", "--allow-run-as-root", "--host", ",".join(site.names), "--mca", "plm_rsh_agent", str(agent),
         "--mca", "pml", "ob1", str(folder / "mpi")], env=CLEAN, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True)
    end = ended(process, time.monotonic() + PATIENCE_S)
    for i in range(len(site.names)):
        for pid in site.processes_on(i):
            subprocess.run(["kill", "-9", str(pid)], capture_output=True)
    return verdict([end], 3)


def gloo(site, folder):
    processes = [subprocess.Popen(
        [*site.enter(i), "/usr/bin/python3", "-c", ALLREDUCE_TORCH], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
        env={**CLEAN, "MASTER_ADDR": site.names[0], "MASTER_PORT": "29500", "RANK": str(i), "WORLD_SIZE": "3"}) for i in range(3)]
    deadline = time.monotonic() + PATIENCE_S
    return verdict([ended(process, deadline) for process in processes], 3)


def nccl(site, topology, library):
    """The addresses that the hosts would publish, and whether they belong to the expected interface."""
    if library is None:
        return "not installed"
    right, shown = True, []
    for i in range(3):
        done = subprocess.run([*site.enter(i), sys.executable, "-c", NCCL_ADDRESS, library], env=CLEAN, capture_output=True,
                              text=True, timeout=PATIENCE_S)
        words = done.stdout.split()
        address = words[-1] if words else "none"
        shown.append(address)
        expected = topology.expect[i] if isinstance(topology.expect, list) else topology.expect
        names = expected if isinstance(expected, set) else {expected}
        listing = subprocess.run([*site.enter(i), "ip", "-o", "address"], capture_output=True, text=True).stdout
        own = [line.split()[1] for line in listing.splitlines() if f" {address}/" in line]
        right = right and bool(own) and own[0] in names and not address.startswith("127.")
    return f"{'right' if right else 'wrong'}: {shown[0]}"


def inside(topology, ask):
    """The result of `ask` in a network created only for it."""
    with tempfile.TemporaryDirectory(prefix="dtrun-site-") as place:
        site = Site(place, topology.addresses, loopback_names=topology.loopback_names)
        try:
            topology.lay(site)
            site.lay()
            return ask(site)
        finally:
            site.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nccl", help="a libnccl.so.2 to ask")
    parser.add_argument("words", nargs="*", metavar="WORD")
    arguments = parser.parse_args()
    # Topologies with a rule test dtrun's option rather than the network.
    stock = [topology for topology in TOPOLOGIES if not (topology.rule or topology.env or topology.config)]
    chosen = [topology for topology in stock
              if not arguments.words or any(word in topology.name for word in arguments.words)]
    if not chosen:
        parser.error(f"no topology is named like that; there are {', '.join(topology.name for topology in stock)}")
    print("| network | to use | Open MPI | Gloo (torch) | NCCL's address |\n| --- | --- | --- | --- | --- |", flush=True)
    with tempfile.TemporaryDirectory(prefix="dtrun-networks-") as name:
        folder = Path(name)
        (folder / "mpi.c").write_text(ALLREDUCE_MPI)
        subprocess.run(["mpicc", "-o", folder / "mpi", folder / "mpi.c"], check=True)
        for topology in chosen:
            row = [topology.name.replace("_", " "), expected_text(topology)]
            for train in (open_mpi, gloo):
                answer = inside(topology, lambda site: train(site, folder))
                if answer != "trains":
                    answer = min(answer, inside(topology, lambda site: train(site, folder)), key=BETTER.index)
                row.append(answer)
            row.append(inside(topology, lambda site: nccl(site, topology, arguments.nccl)))
            print("| " + " | ".join(row) + " |", flush=True)


def expected_text(topology):
    if topology.expect is None:
        return "nothing joins them"
    if isinstance(topology.expect, str):
        return topology.expect
    return (", " if isinstance(topology.expect, list) else " or ").join(sorted(topology.expect) if isinstance(topology.expect, set) else topology.expect)


if __name__ == "__main__":
    main()
