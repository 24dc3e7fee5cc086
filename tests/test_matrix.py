"""One training program under every launcher and over every backend, on one host and on three: the same loss.

A cell that cannot run here is skipped by name, with the reason.
"""

import itertools
import re
import shutil

from support.cluster import ClusterTest, open_lab
from support.job import BUILD, main, nightly, skip
from support.local_launcher import BY_SHELL

TRAIN = BUILD / "tests" / "train"
LAUNCHERS = ["per-process", "per-node", "mpirun", "torchrun"]
BACKENDS = ["gloo", "ucx", "mpi"]
WITHOUT_PMIX = "built without PMIx"


def setUpModule():
    open_lab()


class Matrix(ClusterTest):
    def train(self, launcher, backend, hosts):
        command = ["sh", "-c", BY_SHELL, TRAIN] if launcher == "per-node" else [TRAIN]
        more = f'[launcher]\nname = "{launcher}"\n[backend]\nname = "{backend}"\n'
        if hosts == 1:
            more += '[comm]\nlocal = "none"\n'  # on one host shared memory would leave the backend idle
        result = self.run_cluster(*command, ranks=2, hosts=self.hosts[:hosts], more=more)
        self.assert_ok(result)
        self.assertNotIn(" warn ", result.out + result.err)
        found = re.search(r"loss ([0-9.]+) on (\d+) ranks over (\S+)", result.out)
        self.assertIsNotNone(found, str(result))
        self.assertEqual((int(found[2]), found[3]), (2 * hosts, backend if hosts == 1 else f"shm+{backend}"))
        return float(found[1])

    def plan_of_mpi(self):
        return self.dtrun("plan", "--set", "job.pmi=pmix", "--set", "backend.name=none", "--", TRAIN).err

    def check(self, hosts, cells=tuple(itertools.product(LAUNCHERS, BACKENDS))):
        alone = self.dtrun("--set", "backend.name=gloo", "--", TRAIN)
        self.assert_ok(alone)
        loss = float(re.search(r"loss ([0-9.]+) on 1 ranks", alone.out)[1])
        self.assertLess(loss, 0.25)  # it has learnt something: the mean of cos² / 2
        for launcher, backend in cells:
            with self.subTest(launcher=launcher, backend=backend, hosts=hosts):
                if launcher == "mpirun" and shutil.which("mpirun") is None:
                    self.skipTest("there is no mpirun here (openmpi-bin)")
                if not (BUILD / f"lib/dtrun/plugins/libdtrun_backend_{backend}.so").exists():
                    self.skipTest(f"the {backend} backend was not built")
                if backend == "mpi" and launcher != "mpirun" and WITHOUT_PMIX in self.plan_of_mpi():
                    self.skipTest(WITHOUT_PMIX)
                self.assertAlmostEqual(self.train(launcher, backend, hosts), loss, delta=1e-9)

    @nightly
    def test_on_one_host(self):
        self.check(1)

    def test_each_launcher_and_each_backend_on_three_hosts(self):
        self.check(3, tuple(zip(LAUNCHERS, itertools.cycle(BACKENDS))))

    @nightly
    def test_all_on_three_hosts(self):
        self.check(3)


if __name__ == "__main__":
    if not TRAIN.exists():
        skip("the training program was not built")
    main()
