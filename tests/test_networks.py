"""A job in each of the networks of support/topologies.py: trains where it can, says why where it cannot."""

import dataclasses
import ipaddress
import json
import re
import secrets
import shutil
import subprocess
import tempfile

from support.job import DTRUN, RANK, Job, JobTest, end, main, skip
from support.lab import find, why_not
from support.site import Site
from support.topologies import TOPOLOGIES

SHOW = ('echo "$RANK address $MASTER_ADDR nccl $NCCL_SOCKET_IFNAME $NCCL_SOCKET_FAMILY gloo $GLOO_SOCKET_IFNAME '
        'mpi $OMPI_MCA_btl_tcp_if_include"; exec "$0"')


def setUpModule():
    reason = why_not() or ("" if find("nft") else "nft is not installed (tools/setup test)")
    if reason:
        skip(reason)


class Networks(JobTest):
    def prepare(self, topology):
        folder = tempfile.TemporaryDirectory(prefix="dtrun-site-")
        self.addCleanup(folder.cleanup)
        site = Site(folder.name, topology.addresses, loopback_names=topology.loopback_names)
        self.addCleanup(site.close)
        topology.lay(site)
        site.lay()
        return site

    def run_in(self, topology, site):
        """What dtrun says on node0, having been started on every host."""
        key = self.write(secrets.token_hex(32), "key")
        key.chmod(0o600)
        root = topology.addresses.format(1)
        root = f"[{root}]" if ":" in root else root
        network = f"interface = {json.dumps(topology.rule or 'auto')}\n"
        if topology.rules:
            network += "interface_on = { " + ", ".join(f'{k} = "{v}"' for k, v in topology.rules.items()) + " }\n"
        file = self.write(
            f"[job]\ncommand = {json.dumps(['sh', '-c', SHOW, str(RANK)])}\n"
            f"[cluster]\nhosts = {json.dumps(site.names)}\nconnect = \"manual\"\nroot = \"{root}:29400\"\n"
            f"key_file = \"{key}\"\njoin_timeout = \"60s\"\n[network]\n{network}[logs]\ndir = \"{self.folder}/run\"\n{topology.config}")
        jobs = []
        for i in range(len(site.names)):
            process = subprocess.Popen([*site.enter(i, self.folder), str(DTRUN), "--config", str(file), "--host-index", str(i)],
                                       cwd=self.folder, env=self.environment(**topology.env), stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
            self.addCleanup(end, process)
            jobs.append(Job(process, self.folder))
        return [job.finish() for job in jobs][0]

    def check(self, topology):
        site = self.prepare(topology)
        result = self.run_in(topology, site)
        for _ in range(2):  # a busy machine sends few packets, and chance may lose none of them
            if "packets get lost: " in topology.says and not all(text in result.err for text in topology.says):
                result = self.run_in(topology, site)
        for text in topology.says:
            self.assertIn(text, result.err, str(result))
        if topology.expect is None:
            self.assertEqual(result.code, 2, str(result))
            self.assertNotIn("address", result.out)  # no rank was started
            return
        self.assert_ok(result)
        for rank in range(len(site.names)):
            self.assertIn(f"rank {rank} of 3 over shm+gloo: sum 6\n", result.out)
        record = json.loads((self.folder / "run/network.json").read_text())
        used = [host["interface"] for host in record["hosts"]]
        if isinstance(topology.expect, set):
            self.assertLessEqual(set(used), topology.expect, str(result))
        else:
            expected = topology.expect if isinstance(topology.expect, list) else [topology.expect] * len(used)
            self.assertEqual(used, expected, str(result))
        self.check_variables(topology, result, record)

    def check_variables(self, topology, result, record):
        names = {host["interface"] for host in record["hosts"]}
        networks = {str(ipaddress.ip_interface(host["address"] + "/24").network) for host in record["hosts"]}
        for rank, host in enumerate(record["hosts"]):
            address, name = host["address"], host["interface"]
            line = next(line for line in result.out.splitlines() if f"{rank} address" in line)
            self.assertIn(f"address {record['hosts'][0]['address']} ", line)
            if name == "lo":
                self.assertIn("nccl   gloo  mpi", line)  # the name would mean 127.0.0.1
                continue
            if "," in name or name.startswith("^"):  # which their lists cannot say
                self.assertTrue(line.endswith(f"nccl   gloo  mpi {networks.pop()}"), line)
                return
            mpi = name if len(names) == 1 else ",".join(sorted(networks))  # one value for all hosts
            sees = {"nccl": "=" + name, "gloo": name, "mpi": mpi, **topology.sees}
            if sees["gloo"] is None:
                self.assertTrue(line.endswith(f"nccl   gloo  mpi {sees['mpi']}"), line)
                continue
            self.assertIn(f"gloo {sees['gloo']} ", line)
            self.assertIn(f"nccl {sees['nccl']} {'AF_INET6' if ':' in address else 'AF_INET'} ", line)
            self.assertTrue(line.endswith(f"mpi {sees['mpi']}"), line)

    def test_ucx_uses_the_network_between_hosts(self):
        topology = next(each for each in TOPOLOGIES if each.name == "one_network")
        site = self.prepare(topology)
        result = self.run_in(dataclasses.replace(topology, config='[backend]\nname = "ucx"\n', env={"UCX_LOG_LEVEL": "info"}), site)
        self.assert_ok(result)
        for rank in range(3):
            self.assertIn(f"rank {rank} of 3 over shm+ucx: sum 6\n", result.out)
        ways = set(re.findall(r"tag\(([^)]*)\)", result.out))
        self.assertEqual(ways, {"tcp/eth0"}, str(result))

    def test_ucx_takes_the_first_address_whatever_was_tested(self):
        topology = next(each for each in TOPOLOGIES if each.name == "a_first_address_that_joins_nobody")
        site = self.prepare(topology)
        result = self.run_in(dataclasses.replace(topology, config='[backend]\nname = "ucx"\ntimeout = "10s"\n'), site)
        self.assertRegex(result.err, r"UCX .*10\.5\.0\.1 .*eth0 .*node0")

    def test_open_mpi_where_names_differ(self):
        topology = next(each for each in TOPOLOGIES if each.name == "names_that_differ")
        for launcher in ("mpirun", "per-process"):
            with self.subTest(launcher=launcher):
                if launcher == "mpirun" and shutil.which("mpirun") is None:
                    self.skipTest("there is no mpirun here (openmpi-bin)")
                config = f"[launcher]\nname = \"{launcher}\"\n[backend]\nname = \"mpi\"\n"
                site = self.prepare(topology)
                result = self.run_in(dataclasses.replace(topology, config=config), site)
                self.assert_ok(result)
                for rank in range(3):
                    self.assertIn(f"rank {rank} of 3 over shm+mpi: sum 6\n", result.out)
                    self.assertIn(f"[{rank}] {rank} address 10.5.0.1 nccl", result.out)
                self.assertEqual(result.out.count("mpi 10.5.0.0/24\n"), 3, str(result))
                logs = "".join(file.read_text() for file in self.folder.glob("run/**/rank-*.err"))
                self.assertNotIn("invalid value", result.err + logs)


def test_of(topology):
    return lambda self: self.check(topology)


for each in TOPOLOGIES:
    setattr(Networks, f"test_{each.name}", test_of(each))


if __name__ == "__main__":
    main()
