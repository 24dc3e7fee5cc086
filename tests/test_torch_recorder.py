"""What torch's own flight recorder adds to a look at a running job; with the torch 2 of `tools/setup frameworks`, or of the Python that
DTRUN_TEST_TORCH names."""

import os

import support.frameworks
from support.job import BUILD, SOURCE, JobTest, main, skip, until
from test_torch_backend import version_of

BEGIN = """import threading, time, torch, torch.distributed as dist
dist.init_process_group("gloo")
t = torch.ones(4)
for _ in range(3): dist.all_reduce(t)
assert threading.active_count() == 1
print("ready", flush=True)
"""
PYTHON = next((python for python in (os.environ.get("DTRUN_TEST_TORCH"), support.frameworks.PYTHON) if version_of(python)), None)


class TorchRecorder(JobTest):
    def look(self, text, wanted, more=()):
        job = self.start_ranks(3, PYTHON, self.write(BEGIN + text, "script.py"), sets=more)
        for rank in range(3):
            job.wait_for_line(rank, "ready")
        self.folder_of_run = until(job.run_dir, "a run directory")
        try:
            return until(lambda: self.explained(self.folder_of_run, wanted), wanted)
        finally:
            self.threads = self.dtrun("stacks", self.folder_of_run, "--all-threads").out
            self.assert_ok(self.dtrun("stop", self.folder_of_run))
            job.finish()

    def environment(self, **more):
        return super().environment(PYTHONPATH=f"{SOURCE}/python:{BUILD}/python", **more)

    def explained(self, folder, wanted):
        text = self.dtrun("explain", folder).out
        return text if wanted in text else None

    def test_a_place_has_the_number_of_its_collective(self):
        text = self.look("if dist.get_rank() == 1: time.sleep(1000)\ndist.all_reduce(t)\n", "ranks 0, 2 wait for rank 1")
        self.assertRegex(text, r"ranks 0, 2 in all_reduce at script.py:\d+ \(all_reduce #4 on 'default_pg'\)")
        self.assertRegex(text, r"rank 1 in time.sleep at script.py:\d+ \(no collective after #3 on 'default_pg'\)")
        self.assertNotIn("recorder.py", self.threads)

    def test_calls_that_differ(self):
        group = "group = dist.new_group([0, 1, 2])\n"
        call = "dist.broadcast(t, 1, group=group) if dist.get_rank() == 1 else dist.all_reduce(t, group=group)\n"
        text = self.look(group + call, "is not the same")
        for fact in ("#1 on 'group 1'", "ranks 0, 2 call all_reduce (float [4])", "rank 1 calls broadcast (float [4])"):
            self.assertIn(fact, text)

    def test_a_script_that_switches_the_recorder_off(self):
        text = self.look("if dist.get_rank() == 1: time.sleep(1000)\ndist.all_reduce(t)\n", "ranks 0, 2 wait for rank 1",
                         ["job.env.TORCH_FR_BUFFER_SIZE=0"])
        self.assertNotIn("#", text)


if __name__ == "__main__":
    if PYTHON is None:
        skip("there is no torch 2: `tools/setup frameworks` fetches it from PyPI")
    main()
