"""Jobs that platforms start: their variables on two hosts, their own dialect beside, and ranks that listen where the
platform says that rank 0 does."""

import contextlib
import json
import secrets
import subprocess
import sys

from support.cluster import ClusterTest, open_lab
from support.job import main

LAB = None
# Ranks meet where they are told, as scripts do that follow the platform's guide.
MEET = """
import os, socket, sys, time
rank, port = int(os.environ["DTRUN_RANK"]), int(sys.argv[1] if len(sys.argv) > 1 else os.environ["MASTER_PORT"])
if rank == 0:
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("", port))
        server.listen()
        server.accept()[0].sendall(b"x")
else:
    while True:
        try:
            with socket.create_connection((os.environ["MASTER_ADDR"], port), 5) as client:
                if client.recv(1) == b"x":
                    break
        except OSError:
            time.sleep(0.02)
print("met at", port)
"""
OCCUPY = "import socket, time; s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(('', {})); s.listen(); print('ready', flush=True); time.sleep(1000)"


def setUpModule():
    global LAB
    LAB = open_lab()


def mpi(rank, **more):
    return {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "1", **more}


def root(port):
    return {"MASTER_ADDR": "node0", "MASTER_PORT": str(port)}


# By name: platform, dialects beside, the port that ranks have, and the variables of a host.
PLATFORMS = {
    "gcp": ("gcp", ["gcp"], 2222, lambda i: {"RANK": str(i), "WORLD_SIZE": "2", **root(2222)}),
    "pai": ("pai", [], 23456, lambda i: {"RANK": str(i), "WORLD_SIZE": "2", "NPROC_PER_NODE": "1", **root(23456)}),
    "spark": ("spark", ["spark"], 29701, lambda i: {"RANK": str(i), "WORLD_SIZE": "2", "NODE_RANK": str(i),
                                                    "LOCAL_RANK": "0", **root(29701)}),
    "vertex": ("vertex", ["vertex"], 3333, lambda i: {"CLUSTER_SPEC": json.dumps(
        {"cluster": {"workerpool0": ["node0:3333"], "workerpool1": ["node1:3333"]},
         "task": {"type": f"workerpool{i}", "index": 0}})}),
    "kubeflow": ("kubeflow", ["kubeflow-v1"], 23457, lambda i: {
        "PET_NNODES": "2", "PET_NODE_RANK": str(i), "PET_NPROC_PER_NODE": "1", "PET_MASTER_ADDR": "node0",
        "PET_MASTER_PORT": "23457"}),
    "azureml, MPI": ("azureml", ["azureml"], 6105, lambda i: mpi(
        i, AZ_BATCH_MASTER_NODE="node0:6000", AZ_BATCHAI_MPI_MASTER_NODE="node0")),
    "azureml, PyTorch": ("azureml", ["azureml"], 6106, lambda i: {
        "NODE_RANK": str(i), "RANK": str(i), "WORLD_SIZE": "2", "LOCAL_RANK": "0", **root(6106)}),
    "torchrun, its variables": ("torchrun", ["kubeflow-v2"], 29702, lambda i: {
        "PET_NNODES": "2", "PET_NODE_RANK": str(i), "PET_MASTER_ADDR": "node0", "PET_MASTER_PORT": "29702"}),
    "slurm, a step": ("slurm", ["slurm"], 15000 + 4242, lambda i: {
        "SLURM_JOB_ID": "4242", "SLURM_JOB_NODELIST": "node[0-1]", "SLURM_JOB_NUM_NODES": "2",
        "SLURM_STEP_NODELIST": "node[0-1]", "SLURM_STEP_NUM_NODES": "2", "SLURM_STEP_TASKS_PER_NODE": "1(x2)",
        "SLURM_NODEID": str(i), "SLURM_PROCID": str(i)}),
    "sagemaker": ("sagemaker", [], 7777, lambda i: {
        "SM_HOSTS": '["node0","node1"]', "SM_CURRENT_HOST": f"node{i}", "SM_NUM_GPUS": "0"}),
    "kubernetes, an Indexed Job": ("kubernetes", [], 29500, lambda i: {
        "JOB_COMPLETION_INDEX": str(i), "HOSTNAME": f"node-{i}", "MASTER_ADDR": "node0", "DTRUN_CONFIG_CLUSTER_HOST_COUNT": "2"}),
    "flux, tasks": ("flux", [], None, lambda i: {
        "FLUX_JOB_ID": "f23M1vFtd", "FLUX_JOB_SIZE": "2", "FLUX_JOB_NNODES": "2", "FLUX_TASK_RANK": str(i)}),
    "openmpi": ("openmpi", ["openmpi"], None, mpi),
    "pmi": ("pmi", ["mpich"], None, lambda i: {"PMI_RANK": str(i), "PMI_SIZE": "2", "MPI_LOCALNRANKS": "1"}),
}


class Platforms(ClusterTest):
    def run_on_two(self, platform, dialects, variables, more="", arguments=()):
        command = [sys.executable, "-c", MEET, *arguments]
        file = self.write(f"[job]\ncommand = {json.dumps(command)}\ndialects = {json.dumps(dialects)}\n"
                          f'processes_per_host = 1\n[cluster]\nfrom = "{platform}"\n{more}')
        key = secrets.token_hex(32)
        jobs = [self.start_on(i, "--config", file, env=self.environment(DTRUN_CLUSTER_KEY=key, **variables(i)))
                for i in (1, 0)]
        results = [job.finish() for job in jobs]
        for result in results:
            self.assert_ok(result)
        return results[1]

    def test_ranks_have_the_port_of_the_platform(self):
        for name, (platform, dialects, port, variables) in PLATFORMS.items():
            with self.subTest(name):
                more = "" if port else 'root = "node0:29703"\n'
                result = self.run_on_two(platform, dialects, variables, more)
                self.assertRegex(result.out, rf"\[1\] met at {port or '[0-9]+'}\n")

    @contextlib.contextmanager
    def occupied(self, port):
        """Another program listens on node0's `port`."""
        with subprocess.Popen([*LAB.enter(0), sys.executable, "-c", OCCUPY.format(port)], stdout=subprocess.PIPE, text=True) as other:
            try:
                self.assertEqual(other.stdout.readline(), "ready\n")
                yield
            finally:
                other.kill()

    def test_a_worker_of_torchrun_where_its_agent_has_the_port(self):
        # As torchrun 2 does: its agent serves the store at MASTER_PORT.
        with self.occupied(29704):
            result = self.run_on_two("torchrun", [], lambda i: {
                "TORCHELASTIC_RUN_ID": "r", "TORCHELASTIC_USE_AGENT_STORE": "True", "GROUP_RANK": str(i),
                "GROUP_WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "1", **root(29704)})
        self.assertRegex(result.out, r"\[1\] met at [0-9]+\n")
        self.assertNotIn("met at 29704", result.out)

    def test_the_port_where_hosts_meet_can_be_chosen(self):
        _, dialects, port, variables = PLATFORMS["gcp"]
        with self.occupied(10000 + (port * 31 + 17) % 10000):
            self.run_on_two("gcp", dialects, variables, "root_port = 29705\n")

    def test_a_key_that_is_missing_comes_with_the_way_of_the_platform(self):
        _, _, _, variables = PLATFORMS["spark"]
        file = self.write('[job]\ncommand = ["true"]\n[cluster]\nfrom = "spark"\n')
        result = self.start_on(1, "--config", file, env=self.environment(**variables(1))).finish()
        self.golden_error(result, " key ", "spark.executorEnv.DTRUN_CLUSTER_KEY")


if __name__ == "__main__":
    main()
