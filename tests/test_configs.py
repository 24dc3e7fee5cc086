"""Every example in configs/ is valid and can be planned, from any folder, as on the platform that it is for."""

import json

from support.job import SOURCE, JobTest, main

OWN = {"MASTER_ADDR": "node0", "MASTER_PORT": "6000", "DTRUN_CLUSTER_KEY": "0123456789abcdef" * 4}

# What the platform sets on host 0 of two, and further arguments; and how many ranks that makes.
EXAMPLES = {
    "quickstart": ({}, [], 2),
    "ssh": ({}, [], 4),
    "slurm": ({"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1-2]", "SLURM_JOB_NUM_NODES": "2", "SLURM_TASKS_PER_NODE": "2(x2)"}, [], 4),
    "nccl": ({}, ["--set", "job.processes_per_host=2"], 4),  # which needs no GPU here
    "ucx-infiniband": ({}, [], 4),
    "mpi": ({}, [], 8),
    "horovod": ({}, [], 4),
    "tensorflow": ({}, [], 4),
    "torchrun-elastic": ({}, [], 8),
    "azureml": ({**OWN, "OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "1",
                 "AZ_BATCH_MASTER_NODE": "node0:6000", "AZ_BATCHAI_MPI_MASTER_NODE": "node0"}, [], 8),
    "vertex": ({**OWN, "CLUSTER_SPEC": json.dumps({
        "cluster": {"workerpool0": ["node0:3333"], "workerpool1": ["node1:3333"]},
        "task": {"type": "workerpool0", "index": 0}, "environment": "cloud"})}, [], 8),
    "kubeflow": ({"PET_NNODES": "2", "PET_NODE_RANK": "0", "PET_NPROC_PER_NODE": "4", "PET_MASTER_ADDR": "node0",
                  "PET_MASTER_PORT": "29500", "DTRUN_CLUSTER_KEY": OWN["DTRUN_CLUSTER_KEY"]}, [], 8),
    "spark": ({**OWN, "RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0"}, [], 8),
}

# What the plan says of a machine without the hardware; a build without the plugin lists those that it found.
LACKING = {"nccl": "cannot load NCCL|no GPU|backend 'nccl'", "ucx-infiniband": "no device 'mlx5_0:1'|backend 'ucx'"}
PROGRAMS = ["train", "simulate", "build/release/bin/dtrun-train"]


class Configs(JobTest):
    def setUp(self):
        super().setUp()
        for program in PROGRAMS:  # which the user has; paths are relative to where dtrun is started
            (self.folder / program).parent.mkdir(parents=True, exist_ok=True)
            self.write("#!/bin/sh\n", program).chmod(0o755)

    def test_every_file_is_here(self):
        self.assertEqual({file.stem for file in (SOURCE / "configs").glob("*.toml")}, set(EXAMPLES))

    def test_each_is_valid_and_can_be_planned(self):
        for name, (variables, more, ranks) in EXAMPLES.items():
            with self.subTest(config=name):
                file = SOURCE / "configs" / f"{name}.toml"
                environment = self.environment(**variables)
                checked = self.dtrun("config", "check", file, *more, env=environment)
                result = self.dtrun("plan", "--json", file, *more, env=environment)
                if name in LACKING and result.code != 0:
                    self.assertRegex(result.err, LACKING[name])
                    result = self.dtrun("plan", "--json", file, *more, "--set", "backend.name=none", env=environment)
                else:
                    self.assert_ok(checked)
                self.assert_ok(result)
                self.assertEqual(json.loads(result.out)["world_size"], ranks)

    def test_each_begins_with_what_it_is_for_and_its_command(self):
        for file in (SOURCE / "configs").glob("*.toml"):
            with self.subTest(config=file.name):
                comment = file.read_text().split("\n[")[0]
                self.assertTrue(comment.startswith("# "))
                self.assertRegex(comment, rf"dtrun \S*{file.stem}.toml")


if __name__ == "__main__":
    main()
