"""test_containment.py in a virtual machine, where the memory controller of cgroup v2 is at hand whatever this kernel has."""

import subprocess
import sys

from support.job import PATIENCE_S, SOURCE, JobTest, main, skip

VM = SOURCE / "tools" / "vm"
NOTHING_TO_RUN_IT_WITH = 77


def setUpModule():
    tried = subprocess.run([VM, "true"], capture_output=True, text=True)
    if tried.returncode == NOTHING_TO_RUN_IT_WITH:
        skip(tried.stderr.strip())
    if tried.returncode != 0:
        raise AssertionError(f"a virtual machine does not start: {tried}")


class Containment(JobTest):
    def test_all_of_it_with_a_memory_controller(self):
        run = subprocess.run([VM, sys.executable, "-B", SOURCE / "tests" / "test_containment.py", "-v"],
                             capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertIn("test_a_limit_is_kept_and_the_verdict_says_so", run.stdout)
        self.assertNotIn("the memory controller", run.stdout)


if __name__ == "__main__":
    main()
