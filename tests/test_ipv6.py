"""Each launcher and way to start on hosts that have IPv6 addresses alone."""

import secrets
import shutil
import signal
import sys
import tempfile
import unittest
from pathlib import Path

from support.cluster import ClusterTest, open_lab
from support.job import BUILD, RANK, main, nightly
from support.lab import Ipv6Lab, NoIpv4Lab
from support.local_launcher import BY_SHELL
from support.torchrun import has_torch

LAB = None
HOSTS = ["node0", "node1"]
PLACE = "rank $RANK of $WORLD_SIZE on $(hostname) at $MASTER_ADDR\n"
OPEN_MPI, MPICH = BUILD / "tests/open_mpi_program", BUILD / "tests/mpich_program"
TORCH = """import os
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
value = torch.tensor([dist.get_rank() + 1.0])
dist.all_reduce(value)
os.write(1, f"rank {dist.get_rank()} of {dist.get_world_size()} sum {value.item()} at {os.environ['MASTER_ADDR']}\\n".encode())
dist.destroy_process_group()
"""
SPAWN = """import os
import torch.multiprocessing as mp

def train(local, first, count, size):
    os.environ.update(RANK=str(first + local), WORLD_SIZE=str(size), LOCAL_RANK=str(local))
    exec(open("train.py").read())

if __name__ == "__main__":
    number = lambda name: int(os.environ[name])
    count = number("NPROC_PER_NODE")
    mp.spawn(train, (number("NODE_RANK") * count, count, number("NNODES") * count), nprocs=count)
"""


def setUpModule():
    global LAB
    LAB = open_lab(NoIpv4Lab)


class Ipv6Test(ClusterTest):
    def on_two(self, *command, hosts=HOSTS, **more):
        result = self.run_cluster(*command, hosts=hosts, **more)
        self.assert_ok(result)
        return result

    def assert_sums(self, result, over):
        for rank in range(4):
            self.assertIn(f"rank {rank} of 4 over {over}: sum 10\n", result.out)

    def assert_torch(self, *results, ranks=4):
        out = "".join(result.out for result in results)
        for rank in range(ranks):
            self.assertIn(f"rank {rank} of {ranks} sum {sum(range(ranks + 1))}.0 at {LAB.address(0)}\n", out)


class PerProcess(Ipv6Test):
    def test_ranks_meet_over_gloo_in_shared_memory_inside(self):
        result = self.on_two(RANK)
        self.assert_sums(result, "shm+gloo")

    def test_hosts_may_be_named_by_their_addresses(self):
        for form in ("[{}]", "[{}]:2"):
            with self.subTest(form=form):
                hosts = [form.format(LAB.address(i)) for i in range(2)]
                result = self.on_two("sh", "-c", f"echo {PLACE.strip()}", hosts=hosts)
                for rank in range(4):
                    self.assertIn(f"[{rank}] rank {rank} of 4 on node{rank // 2} at {LAB.address(0)}\n", result.out)

    def test_a_command_line_and_a_hostfile_take_them_too(self):
        first, second = (LAB.address(i) for i in range(2))
        self.write(f"[{first}]:2\n[{second}] slots=2\n", "hosts")
        shell = ["--set", "cluster.remote_shell=[" + ", ".join(f'"{word}"' for word in LAB.shell()) + "]"]
        for words in (["--hosts", f"[{first}]:2,[{second}]:2"], ["--hostfile", "hosts"], ["-H", f"[{first}],[{second}]", "-n", "4"]):
            with self.subTest(words=words):
                result = self.start_on(0, *words, *shell, RANK).finish()
                self.assert_ok(result)
                self.assert_sums(result, "shm+gloo")
        refused = self.start_on(0, "--hosts", f"{first},{second}", *shell, RANK).finish()  # a port, or slots?
        self.golden_error(refused, f"'{first}'", "IPv6")

    @nightly
    @unittest.skipUnless(has_torch(), "there is no torch.distributed")
    def test_a_torch_script_needs_nothing(self):
        self.assert_torch(self.on_two(sys.executable, self.write(TORCH, "train.py")))

    def test_hosts_that_are_started_by_hand(self):
        key = self.write(secrets.token_hex(32), "key")
        key.chmod(0o600)
        file = self.config([RANK], hosts=HOSTS,
                           more=f'connect = "manual"\nroot = "[{LAB.address(0)}]:29400"\nkey_file = "{key}"\n')
        jobs = [self.start_on(i, "--config", file, "--host-index", i) for i in (1, 0)]
        results = [job.finish() for job in jobs]
        for result in results:
            self.assert_ok(result)
        self.assert_sums(results[1], "shm+gloo")

    def test_a_host_that_cannot_be_reached_is_named(self):
        result = self.run_cluster(RANK, hosts=["node0", "fd00:77::99"], more='join_timeout = "10s"\n')
        self.assertNotEqual(result.code, 0)
        self.assertIn("fd00:77::99", result.err)


class PerNode(Ipv6Test):
    MORE = "[launcher]\nname = \"per-node\"\n"

    def spawn(self):
        self.write(TORCH, "train.py")
        return self.write(SPAWN, "spawn.py")

    def test_ranks_that_the_program_makes_meet(self):
        self.assert_sums(self.on_two("sh", "-c", BY_SHELL, RANK, more=self.MORE), "shm+gloo")

    @nightly
    @unittest.skipUnless(has_torch(), "there is no torch.distributed")
    def test_spawned_ranks_of_torch_meet(self):
        self.assert_torch(self.on_two(sys.executable, self.spawn(), more=self.MORE))


class Mpi(Ipv6Test):
    MORE = "[launcher]\nname = \"mpirun\"\n[launcher.options]\n"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = tempfile.TemporaryDirectory(prefix="dtrun-lab-")
        cls.addClassCleanup(folder.cleanup)
        cls.lab = Ipv6Lab(folder.name)
        cls.addClassCleanup(cls.lab.close)

    def place_and_sum(self, rank):
        return f"rank {rank} of 4 on node{rank // 2}: sum 10"

    @unittest.skipUnless(OPEN_MPI.exists(), "no Open MPI program was built (libopenmpi-dev)")
    def test_an_open_mpi_program_needs_nothing(self):
        result = self.on_two(OPEN_MPI)
        for rank in range(4):
            self.assertIn(self.place_and_sum(rank) + "\n", result.out)

    @unittest.skipUnless(MPICH.exists(), "no MPICH program was built (libmpich-dev)")
    def test_an_mpich_program_needs_nothing_to_communicate(self):
        """The job is stopped then: Debian's MPICH may hang in MPI_Finalize over UCX's TCP (docs/mpi.md)."""
        job = self.start_cluster(MPICH, "wait-sum", hosts=HOSTS)
        for rank in range(4):
            job.wait_for_line(rank, self.place_and_sum(rank))
        job.signal(signal.SIGTERM)
        job.finish()

    @unittest.skipUnless(shutil.which("mpirun"), "there is no mpirun (openmpi-bin)")
    def test_open_mpis_mpirun_starts_the_ranks(self):
        result = self.on_two("sh", "-c", f"echo {PLACE.strip()}", more=self.MORE)
        for rank in range(4):
            self.assertIn(f"[{rank}] rank {rank} of 4 on node{rank // 2} at {LAB.address(0)}\n", result.out)
        for backend in ("gloo", "mpi"):
            result = self.on_two(RANK, more=self.MORE + f"[backend]\nname = \"{backend}\"\n")
            self.assert_sums(result, f"shm+{backend}")

    @unittest.skipUnless(shutil.which("mpiexec.hydra"), "there is no mpiexec.hydra (mpich)")
    def test_mpichs_mpiexec_has_ipv4_alone(self):
        result = self.run_cluster(RANK, hosts=HOSTS, more=self.MORE + "program = \"mpiexec.hydra\"\n")
        self.golden_error(result, f"IPv6 ({LAB.address(0)})", "mpiexec.hydra (Hydra)", "IPv4",
                          'launcher.name = "per-process"')


@unittest.skipUnless(has_torch(), "there is no torch.distributed")
class Torchrun(Ipv6Test):
    def test_with_each_rendezvous(self):
        self.run_torchrun([f"--master-addr=[{LAB.address(0)}]", "--master-port=29400"],
                          ["--rdzv-backend=c10d", f"--rdzv-endpoint=[{LAB.address(0)}]:29400", "--rdzv-id=7"])

    @nightly
    def test_with_other_ways_to_write_the_address(self):
        self.run_torchrun([f"--master-addr={LAB.address(0)}", "--master-port=29400"],
                          ["--rdzv-backend=c10d", "--rdzv-endpoint=node0:29400", "--rdzv-id=7"])

    def run_torchrun(self, *ways):
        script = self.write(TORCH, "train.py")
        key = {"DTRUN_CLUSTER_KEY": secrets.token_hex(32), "PYTHON_EXEC": sys.executable}
        for words in ways:
            with self.subTest(words=words):
                jobs = []
                for node in range(2):
                    number = [] if "--rdzv-id=7" in words else [f"--node-rank={node}"]
                    jobs.append(self.start_on(node, "torchrun", "--nnodes=2", "--nproc-per-node=1", *words, *number, script,
                                              env=self.environment(**key)))
                results = [job.finish() for job in jobs]
                for result in results:
                    self.assert_ok(result)
                self.assert_torch(*results, ranks=2)


if __name__ == "__main__":
    main()
