"""Training on the fake accelerator through dtrun: over its own backend, and staged over others.

Every rank compares its weights with those of the host, bit by bit, under delays of many seeds.
"""

import re

from support.job import BUILD, JobTest, main

PLUGINS = BUILD / "tests/fake"
TRAIN = BUILD / "tests/fake_train"
FAKE = ("backend.name=cpu:gloo,fake:fake",)


class Devices(JobTest):
    def train(self, route, *arguments, sets=()):
        result = self.ranks(2, TRAIN, *arguments, sets=sets, flags=("--plugin-dir", PLUGINS),
                            env=self.environment(OMP_NUM_THREADS="1"))
        self.assert_ok(result)
        found = re.findall(r"rank (\d): (\d+) of (\d+) seeds differ, the host waited (\d+) times, over (.*)", result.out)
        self.assertEqual(sorted(rank for rank, *_ in found), ["0", "1"], result.out)
        for _, different, seeds, waits, over in found:
            self.assertEqual(over, route)
            self.assertEqual(waits, "0", result.out)
            yield int(different), int(seeds)

    def test_a_backend_of_the_device_trains(self):
        for different, seeds in self.train("fake", "10", sets=FAKE):
            self.assertEqual((different, seeds), (0, 10))

    def test_a_missing_wait_shows(self):
        for stream in "averages", "optimizer":
            self.assertTrue(any(different for different, _ in self.train("fake", "10", stream, sets=FAKE)), stream)

    def test_staging_over_shared_memory_trains(self):
        for different, seeds in self.train("staging over shm", "10"):
            self.assertEqual((different, seeds), (0, 10))

    def test_staging_over_backends_trains(self):
        for backend in "gloo", "ucx":
            if not (BUILD / f"lib/dtrun/plugins/libdtrun_backend_{backend}.so").exists():
                continue
            sets = (f"backend.name={backend}", "comm.local=none")
            for different, seeds in self.train(f"staging over {backend}", "5", sets=sets):
                self.assertEqual((different, seeds), (0, 5))


if __name__ == "__main__":
    main()
