"""Environment dialects: `dtrun env`, job.dialects, and what of an outer launcher reaches a rank."""

import json
import shlex
import socket
import subprocess
import sys

from support.job import JobTest, main

DIALECTS = {"accelerate", "azureml", "deepspeed", "gcp", "horovod", "jax", "kubeflow-v1", "kubeflow-v2", "lightning", "mpich",
            "openmpi", "slurm", "spark", "tf-config", "torchrun", "vertex"}
NONE = "backend.name=none"
TASK = ["python3", "-c", """
import json, os, socket
config = json.loads(os.environ["TF_CONFIG"])
task = config["task"]
host, port = config["cluster"][task["type"]][task["index"]].split(":")
with socket.socket() as listener:
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((host, int(port)))
    listener.listen()
    print("task", task["type"], task["index"], len(config["cluster"]["worker"]))
"""]


class Env(JobTest):
    def env(self, dialect, rank, *more, **keywords):
        return self.dtrun("env", "--rank", rank, "--as", dialect, "--set", "job.processes_per_host=4", *more, **keywords)

    def test_list_names_every_dialect(self):
        result = self.dtrun("env", "--list")
        self.assert_ok(result)
        self.assertEqual({line.split()[0] for line in result.out.splitlines()}, DIALECTS)
        listed = json.loads(self.dtrun("env", "--list", "--json").out)["dialects"]
        self.assertEqual({row["name"] for row in listed}, DIALECTS)

    def test_every_dialect_prints_variables_of_the_rank(self):
        for dialect in sorted(DIALECTS):
            with self.subTest(dialect=dialect):
                result = self.env(dialect, 2)
                self.assert_ok(result)
                self.assertRegex(result.out, r"^\w+=")

    def test_tokens_stand_for_what_only_a_run_knows(self):
        result = self.env("torchrun", 3)
        self.assertIn("RANK=3\n", result.out)
        self.assertIn("MASTER_PORT=⟦master_port⟧\n", result.out)
        self.assertIn("brackets", result.err)

    def test_json_and_shell_say_the_same(self):
        variables = json.loads(self.env("horovod", 1, "--json").out)
        self.assertEqual((variables["rank"], variables["dialect"]), (1, "horovod"))
        script = self.env("horovod", 1, "--shell").out
        for name, value in variables["env"].items():
            self.assertIn(f"export {name}='{value}'\n", script)
        config = self.env("tf-config", 0, "--shell").out
        done = subprocess.run(["sh", "-c", config + 'printf %s "$TF_CONFIG"'], capture_output=True, text=True)
        self.assertEqual(json.loads(done.stdout)["task"], {"type": "worker", "index": 0})
        self.assertEqual(len(shlex.split(config)), 2)

    def test_a_config_gives_the_ranks(self):
        file = self.write('[job]\ncommand = ["no-backend-needed"]\nprocesses_per_host = 3\n[backend]\nname = "none"\n')
        file.write_text(file.read_text().replace("no-backend-needed", "true"))
        result = self.dtrun("env", "--rank", "2", "--as", "mpich", "--config", file)
        self.assert_ok(result)
        self.assertIn("PMI_SIZE=3\n", result.out)

    def test_mistakes_are_explained(self):
        self.golden_error(self.env("horovd", 0), "'horovod'?")
        self.golden_error(self.env("horovod", 4), "rank 4", "from 0 to 3")
        self.golden_error(self.env("horovod", -1), "rank -1")
        self.assert_user_error(self.dtrun("env"), "--as DIALECT")
        self.assertEqual(self.env("horovod", 0, "--json", "--shell").code, 2)


class Dialects(JobTest):
    def test_ranks_get_the_dialects_on_top_of_the_launchers_variables(self):
        result = self.ranks(2, "sh", "-c", "echo $RANK is $HOROVOD_RANK of $SLURM_NTASKS at $MASTER_PORT",
                            sets=[NONE, "job.dialects=horovod,slurm", "job.master_port=0"])
        self.assert_ok(result)
        for rank in (0, 1):
            self.assertRegex(result.out, rf"(?m){rank} is {rank} of 2 at \d+$")

    def test_two_that_disagree_are_refused_with_both_values(self):
        result = self.ranks(2, "true", sets=[NONE, "job.dialects=gcp"])
        self.golden_error(result, "--set job.dialects", "per-process", "WORLD_SIZE=2", "gcp", "WORLD_SIZE=1")

    def test_a_variable_of_a_dialect_is_not_the_users(self):
        result = self.ranks(1, "true", sets=[NONE, "job.dialects=horovod", "job.env.HOROVOD_RANK=7"])
        self.golden_error(result, "'HOROVOD_RANK'", "per-process", "job.dialects")

    def test_a_users_value_wins_over_a_fallback(self):
        environment = self.environment(NCCL_SOCKET_IFNAME="eth7")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        result = self.ranks(1, "sh", "-c", "echo $NCCL_SOCKET_IFNAME", env=environment,
                            sets=[NONE, "job.dialects=azureml", f"job.master_port={port}"])
        self.assert_ok(result)
        self.assertIn("eth7", result.out)

    def test_azure_programs_get_the_port_that_they_have_built_in(self):
        result = self.dtrun("plan", "--set", NONE, "--set", "job.dialects=azureml", "--", "true")
        self.assert_ok(result)
        self.assertIn("MASTER_PORT=54965", result.out)

    def test_every_task_of_tensorflow_has_a_port_of_its_own(self):
        result = self.ranks(4, *TASK, sets=[NONE, "job.success=all", "job.dialects=tf-config",
                                                "job.roles=chief=1,worker=2,ps=1"])
        self.assert_ok(result)
        for task in ("chief 0 2", "worker 0 2", "worker 1 2", "ps 0 2"):
            self.assertIn(f"task {task}\n", result.out)
        runtime = json.loads((self.folder / "runs").glob("*/latest/runtime.json").__next__().read_text())
        self.assertEqual(len({runtime[f"port_{rank}"] for rank in range(4)}), 4)

    def test_a_job_with_parameter_servers_succeeds_with_its_chief(self):
        script = ("import json, os, time\nrole = json.loads(os.environ['TF_CONFIG'])['task']['type']\n"
                  "open(role + os.environ['RANK'], 'w').close()\n"
                  "while role != 'chief' or len(os.listdir('.')) < 4: time.sleep(0.05)\n")
        tasks = self.folder / "tasks"
        tasks.mkdir()
        result = self.ranks(4, sys.executable, self.write(script, "tfps.py"), sets=[
            NONE, f"job.cwd={tasks}", "job.dialects=tf-config", "job.roles=chief=1,worker=2,ps=1"])
        self.assert_ok(result)
        self.golden_lines(result.err, "chief", "1-3")
        self.assertIn("succeeded", result.err)
        self.assert_verdict(result, exit_class=None, exit_code=0)

    def test_that_decide_success_must_be_there(self):
        self.golden_error(self.ranks(2, "true", sets=[NONE, "job.success=chief"]), "--set job.success", "'chief'")

    def test_roles_that_do_not_add_up_are_refused(self):
        self.golden_error(self.ranks(2, "true", sets=[NONE, "job.roles=worker=1"]), "--set job.roles", " 1 rank", " 2")


class Outer(JobTest):
    def test_an_outer_launcher_does_not_reach_the_ranks(self):
        outer = {"RANK": "5", "WORLD_SIZE": "9", "OMPI_COMM_WORLD_RANK": "5", "PMIX_RANK": "5", "PMI_FD": "9",
                 "TORCHELASTIC_RUN_ID": "old", "SLURM_PROCID": "5", "HOROVOD_RANK": "5", "TF_CONFIG": "{}",
                 "SLURM_JOB_ID": "77", "OMPI_MCA_btl": "self,tcp"}
        result = self.ranks(1, "env", env=self.environment(**outer), sets=[NONE, "output.prefix=none"], flags=["-v"])
        self.assert_ok(result)
        seen = dict(line.split("=", 1) for line in result.out.splitlines() if "=" in line)
        for name in outer:
            if name in ("RANK", "WORLD_SIZE", "SLURM_JOB_ID", "OMPI_MCA_btl"):
                continue
            self.assertNotIn(name, seen)
            self.assertRegex(result.err, rf"note .*\b{name}\b")
        self.assertEqual((seen["RANK"], seen["WORLD_SIZE"]), ("0", "1"))
        self.assertEqual((seen["SLURM_JOB_ID"], seen["OMPI_MCA_btl"]), ("77", "self,tcp"))
        self.golden_lines(result.err, "RANK=5, WORLD_SIZE=9")

    def test_a_port_that_the_user_has_exported_is_told(self):
        environment = self.environment(MASTER_PORT="29512")
        for launcher in [], ["torchrun", "--no-python"]:
            self.golden_lines(self.dtrun(*launcher, "true", env=environment).err, "warning    MASTER_PORT=29512")
        environment["DTRUN_CONFIG_JOB_MASTER_PORT"] = "29512"
        kept = self.dtrun("sh", "-c", "echo $MASTER_PORT", env=environment)
        self.assertEqual(kept.out, "29512\n")
        self.assertNotIn("warning", kept.err)

    def test_what_the_user_gives_to_the_job_is_passed_on(self):
        result = self.ranks(1, "sh", "-c", "echo $TF_CONFIG", env=self.environment(TF_CONFIG="outer"),
                            sets=[NONE, "job.env.TF_CONFIG=mine", "output.prefix=none"])
        self.assert_ok(result)
        self.assertEqual(result.out, "mine\n")


if __name__ == "__main__":
    main()
