"""The example configs: written by `dtrun config init`, valid, and planned as they say, from any folder."""

import json
import secrets

from support.job import SOURCE, JobTest, main

KEY = {"DTRUN_CLUSTER_KEY": secrets.token_hex(32)}
POOLS = {"cluster": {"workerpool0": ["node0:3333"], "workerpool1": ["node1:3333"]}, "task": {"type": "workerpool0", "index": 0}}
# What a platform sets on the first of two hosts.
PLATFORMS = {
    "slurm": {"SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": "node[0-1]", "SLURM_JOB_NUM_NODES": "2", "SLURM_TASKS_PER_NODE": "2(x2)"},
    "azureml": {"NODE_RANK": "0", "RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "MASTER_ADDR": "node0", "MASTER_PORT": "6106"},
    "vertex": {"CLUSTER_SPEC": json.dumps(POOLS)},
    "kubeflow": {"PET_NNODES": "2", "PET_NODE_RANK": "0", "PET_NPROC_PER_NODE": "2", "PET_MASTER_ADDR": "node0",
                 "PET_MASTER_PORT": "23457"},
    "spark": {"RANK": "0", "WORLD_SIZE": "2", "NODE_RANK": "0", "LOCAL_RANK": "0", "MASTER_ADDR": "node0", "MASTER_PORT": "29701"},
}
# Ranks on each host, as `dtrun plan` has them.
RANKS = {"basic": [4], "multi-host": [8, 8, 4], "slurm": [2, 2], "gpu": [8, 8], "cuda": [8, 8], "mpi": [4, 4], "horovod": [4, 4],
         "tensorflow": [2, 2], "elastic": [8, 8, 8], "azureml": [4, 4], "vertex": [8, 8], "kubeflow": [2, 2], "spark": [8, 8]}
NAMES = sorted(file.stem for file in (SOURCE / "configs").glob("*.toml") if file.stem != "quickstart")


class Templates(JobTest):
    def written(self, name):
        file = self.folder / "elsewhere" / f"{name}.toml"
        file.parent.mkdir(exist_ok=True)
        self.assert_ok(self.dtrun("config", "init", "--template", name, file))
        return file

    def test_each_is_a_valid_config_that_plans_what_it_says(self):
        self.assertEqual(NAMES, sorted([*RANKS, "infiniband"]))
        self.write("", "train.py")
        for name in RANKS:
            with self.subTest(name):
                file = self.written(name)
                env = self.environment(**KEY, **PLATFORMS.get(name, {}))
                self.assert_ok(self.dtrun("config", "check", file, env=env))
                planned = self.dtrun("plan", "--json", file, env=env)
                self.assert_ok(planned)
                self.assertEqual([host["local_size"] for host in json.loads(planned.out)["hosts"]], RANKS[name])

    def test_those_of_a_platform_are_checked_away_from_it(self):
        for name in PLATFORMS:
            with self.subTest(name):
                file = self.written(name)
                checked = self.dtrun("config", "check", file)
                self.assert_ok(checked)
                self.golden(checked.out)
                self.assert_user_error(self.dtrun("plan", file), "is unset")
        misspelled = self.dtrun("config", "check", self.folder / "elsewhere/slurm.toml", "--set", "cluster.from=slrum")
        self.golden_error(misspelled, '"slurm"')

    def test_the_one_that_requires_infiniband_says_where_there_is_none(self):
        file = self.written("infiniband")
        self.write("#!/bin/sh\n", "train").chmod(0o755)
        self.assert_ok(self.dtrun("config", "check", file))
        planned = self.dtrun("plan", "--json", file)
        if planned.code != 0:
            self.assert_user_error(planned, 'required = "rdma"', "set required")

    def test_the_main_job_is_valid(self):
        self.assert_ok(self.dtrun("config", "check", SOURCE / "configs" / "quickstart.toml", "--set", "job.command=true"))

    def test_each_opens_with_what_it_is_for_and_how_it_is_started(self):
        listed = self.dtrun("config", "init", "--list")
        self.assert_ok(listed)
        for name in NAMES:
            text = (SOURCE / "configs" / f"{name}.toml").read_text()
            self.assertTrue(text.startswith("# "), name)
            self.assertRegex(text[: text.index("\n[")], r'dtrun"?,? "?job\.toml', name)
            self.assertRegex(listed.out, rf"(?m)^  {name} +\w")

    def test_the_page_of_the_command_line_has_each(self):
        page = (SOURCE / "docs" / "command-line.md").read_text()
        for name in NAMES:
            self.assertIn(f"[{name}](../configs/{name}.toml)", page)

    def test_what_init_writes_is_the_file_of_that_name(self):
        for name in NAMES:
            self.assertEqual(self.dtrun("config", "init", "--template", name, "-").out,
                             (SOURCE / "configs" / f"{name}.toml").read_text())

    def test_without_words_it_writes_the_basic_one_and_says_what_is_next(self):
        result = self.dtrun("config", "init")
        self.assert_ok(result)
        self.assertEqual((self.folder / "job.toml").read_text(), (SOURCE / "configs" / "basic.toml").read_text())
        self.assertIn("dtrun plan job.toml", result.out)

    def test_it_replaces_a_file_only_when_told(self):
        file = self.write("mine", "job.toml")
        self.golden_error(self.dtrun("config", "init", ""))
        self.golden_error(self.dtrun("config", "init"), "dtrun: 'job.toml'", "--force")
        self.assertEqual(file.read_text(), "mine")
        self.assert_ok(self.dtrun("config", "init", "--force"))
        self.assertNotEqual(file.read_text(), "mine")

    def test_mistakes_name_the_object_and_the_next_step(self):
        self.golden_error(self.dtrun("config", "init", "--template", "slrum"), "dtrun: --template slrum", "'slurm'?", "multi-host")
        self.golden_error(self.dtrun("config", "init", "--template", "kitchen"), "--list")
        self.assert_user_error(self.dtrun("config", "init", self.folder / "none" / "job.toml"), "cannot create", "none/job.toml",
                               f"mkdir -p {self.folder / 'none'}")
        self.golden_error(self.dtrun("config", "init", "slurm"), "dtrun: 'slurm'", "config init --template slurm")
        self.assert_user_error(self.dtrun("config", "init", "x.yaml"), "ends in .toml", "write x.toml")


if __name__ == "__main__":
    main()
