"""The per-node launcher: one process per host; the program makes the ranks."""

import json
import sys
import unittest

from support.job import BUILD, RANK, JobTest, main, needs_torch
from support.local_launcher import BY_SHELL

SHOW = [sys.executable, "-c", "import json,os; print(json.dumps(dict(os.environ)))"]
OPEN_MPI = BUILD / "tests/open_mpi_program"
PER_NODE = ["launcher.name=per-node"]
SPAWN = r"""
import os, sys
import torch.multiprocessing as mp
import torch.distributed as dist
import torch

def train(local, nodes, node, count):
    rank, size = node * count + local, nodes * count
    dist.init_process_group("gloo", rank=rank, world_size=size)
    value = torch.tensor([rank + 1.0])
    dist.all_reduce(value)
    os.write(1, f"rank {rank} of {size} sum {value.item()}\n".encode())  # in one piece
    dist.destroy_process_group()

if __name__ == "__main__":
    number = lambda name: int(os.environ[name])
    mp.spawn(train, (number("NNODES"), number("NODE_RANK"), number("NPROC_PER_NODE")), nprocs=number("NPROC_PER_NODE"))
"""
TORCHRUN = """
from torch.distributed.run import config_from_args, parse_args
config = config_from_args(parse_args(["train.py"]))[0]
print(config.min_nodes, "to", config.max_nodes, "nodes,", config.nproc_per_node, "processes,", config.rdzv_backend, "at",
      config.rdzv_endpoint + ", node", config.rdzv_configs["rank"])
"""


class PerNode(JobTest):
    def node(self, count, *command, sets=(), **more):
        return self.ranks(count, *command, sets=[*PER_NODE, *sets], **more)

    def test_the_process_finds_the_environment_of_a_node(self):
        env = self.environment(RANK="7", LOCAL_RANK="7", TORCHELASTIC_RUN_ID="outer")
        result = self.node(3, *SHOW, sets=["backend.name=none"], env=env)
        self.assert_ok(result)
        self.assertIn("succeeded: 3 ranks", result.err)
        seen = json.loads(result.out.split("] ", 1)[1])
        for name, value in {"NNODES": "1", "NODE_RANK": "0", "NPROC_PER_NODE": "3", "MASTER_ADDR": "127.0.0.1",
                            "PET_NPROC_PER_NODE": "3", "DTRUN_FIRST_RANK": "0"}.items():
            self.assertEqual(seen[name], value)
        self.assertEqual(seen["PET_MASTER_PORT"], seen["MASTER_PORT"])
        for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "TORCHELASTIC_RUN_ID", "DTRUN_RANK", "DTRUN_LOCAL_RANK"):
            self.assertNotIn(name, seen)

    def test_the_plan_shows_one_process_for_all_ranks(self):
        sets = [word for item in [*PER_NODE, "job.processes_per_host=4"] for word in ("--set", item)]
        result = self.dtrun("plan", *sets, "--", "true")
        self.assert_ok(result)
        self.golden_lines(result.out, "ranks 0-3 ")
        self.assertEqual(json.loads(self.dtrun("plan", "--json", *sets, "--", "true").out)["processes"][0]["rank_count"], 4)

    def test_ranks_of_a_launcher_of_ones_own_use_the_communicator(self):
        result = self.node(3, "sh", "-c", BY_SHELL, RANK)
        self.assert_ok(result)
        for rank in range(3):
            self.assertIn(f"rank {rank} of 3 over shm: sum 6\n", result.out)

    def test_a_rank_that_is_not_told_its_number_says_what_to_do(self):
        result = self.node(2, RANK)
        self.assertEqual(result.code, 3, str(result))
        self.golden_lines(result.err, "[0] rank failed: ", "LOCAL_RANK")
        self.golden_lines(result.err, "dtrun: job ", "ranks 0, 1 ", "code 3")

    def test_a_launcher_of_ones_own_that_starts_too_many_is_refused(self):
        result = self.node(2, "sh", "-c", BY_SHELL, RANK, env=self.environment(), sets=["job.env.LOCAL_WORLD_SIZE=4"])
        self.assertEqual(result.code, 3, str(result))
        self.golden_lines(result.err, "[0] rank failed: ", "LOCAL_WORLD_SIZE is '4'")

    @unittest.skipUnless(OPEN_MPI.exists(), "there is no Open MPI program here")
    def test_a_program_that_is_one_rank_of_mpi_is_refused(self):
        self.golden_error(self.node(2, OPEN_MPI), "launcher.name", f"'{OPEN_MPI}'", "2 ranks", 'launcher.name = "per-process"')

    def test_a_dialect_with_variables_of_ranks_is_refused(self):
        self.golden_error(self.node(2, "true", sets=["job.dialects=horovod"]), "job.dialects", "horovod", "ranks 0-1")

    def test_ranks_end_with_the_process_that_started_them(self):
        result = self.node(2, "sh", "-c", BY_SHELL, "sh", "-c", "[ $LOCAL_RANK = 1 ] && kill -9 $PPID; sleep 1000")
        self.assertEqual(result.code, 137, str(result))
        self.golden_lines(result.err, "dtrun: job ", "ranks 0, 1 ", "signal 9")  # and tearDown looks for survivors

    @needs_torch
    def test_torchs_torchrun_needs_no_arguments(self):
        # What it would do; that of Debian's torch 1.13 does nothing more with its Python 3.11.
        result = self.node(2, sys.executable, "-c", TORCHRUN, sets=["backend.name=none"])
        self.assert_ok(result)
        port = json.loads((self.folder / "runs/job/latest/runtime.json").read_text())["master_port"]
        self.assertRegex(result.out, f"1 to 1 nodes, .*static at 127.0.0.1:{port}, node 0\n")

    @needs_torch
    def test_spawned_ranks_of_torch_meet(self):
        result = self.node(2, sys.executable, self.write(SPAWN, "spawn.py"), sets=["backend.name=none"])
        self.assert_ok(result)
        for rank in range(2):
            self.assertIn(f"rank {rank} of 2 sum 3.0\n", result.out)


if __name__ == "__main__":
    main()
