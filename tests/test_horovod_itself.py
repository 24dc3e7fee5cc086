"""Horovod itself, on one host and on three: it meets at dtrun's rendezvous server.

Runs where `tools/setup frameworks` has built it, in build/horovod.
"""

from support.cluster import ClusterTest, open_lab
from support.job import SOURCE, main, skip

PYTHON = SOURCE / "build/horovod/bin/python3"
COMMAND = [PYTHON, SOURCE / "tests/frameworks/horovod_train.py"]
DIALECT = "job.dialects=horovod"


def setUpModule():
    open_lab()


class Horovod(ClusterTest):
    def test_ranks_of_one_host(self):
        result = self.ranks(2, *COMMAND, sets=[DIALECT])
        self.assert_ok(result)
        for rank in range(2):
            self.assertIn(f"rank {rank} of 2, {rank} of 2 on host 0: sum 3, weights agree", result.out)

    def test_ranks_of_three_hosts(self):
        result = self.start_on(0, "--config", self.config(COMMAND), "--set", DIALECT).finish()
        self.assert_ok(result)
        for rank in range(6):
            self.assertIn(f"rank {rank} of 6, {rank % 2} of 2 on host {rank // 2}: sum 21, weights agree", result.out)


if __name__ == "__main__":
    if not PYTHON.exists():
        skip(f"{PYTHON} is missing: `tools/setup frameworks` builds Horovod from its sources, which PyPI has")
    main()
