"""An unmodified torch.distributed script with env:// and gloo, under dtrun."""

import subprocess
import sys

from support.job import SOURCE, JobTest, main, skip


class TorchScript(JobTest):
    def test_ddp_trains_and_ranks_agree(self):
        for world in (1, 3):
            result = self.ranks(world, sys.executable, SOURCE / "tests/programs/ddp.py")
            self.assert_ok(result)
            for rank in range(world):
                self.assertIn(f"rank {rank} of {world} agrees", result.out)

    def test_a_script_that_fails_shows_its_traceback_and_its_rank(self):
        script = self.write("import os, torch.distributed as d\nd.init_process_group('gloo')\n"
                            "if os.environ['RANK'] == '1': raise ValueError('bad batch')\nd.barrier()\n", "bad.py")
        result = self.ranks(2, sys.executable, script, sets=["job.grace=2s"])
        self.assertEqual(result.code, 1, str(result))
        verdict = result.err[result.err.rindex("dtrun: job"):]
        self.assertIn("rank 1", verdict.splitlines()[0])
        self.assertIn("ValueError: bad batch", verdict)


if __name__ == "__main__":
    probe = subprocess.run([sys.executable, "-c", "import torch.distributed"], capture_output=True, text=True)
    if probe.returncode != 0:
        skip(f"{sys.executable} has no torch.distributed: {probe.stderr.strip().splitlines()[-1:]}")
    main()
