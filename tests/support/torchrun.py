"""Jobs that are started by torchrun's command line."""

import json
import subprocess
import sys

from support.job import JobTest

DUMP = """import json, os, sys
with open(f"{sys.argv[1]}-{os.environ['RANK']}", "w") as file:
    json.dump({"argv": sys.argv, "flags": sys.flags.interactive, "env": dict(os.environ),
               "unbuffered": sys.stdout.write_through}, file)
"""


def has_torch():
    return subprocess.run([sys.executable, "-c", "import torch.distributed"], capture_output=True).returncode == 0


class TorchrunTest(JobTest):
    def environment(self, **more):
        environment = super().environment(PYTHON_EXEC=sys.executable, **more)
        return {k: v for k, v in environment.items() if not k.startswith(("PET_", "TORCHELASTIC_"))} | more

    def torchrun(self, *arguments, env=None, program="torchrun"):
        return self.dtrun(program, *arguments, env=env)

    def dump(self, *options, arguments=(), program="torchrun", env=None, rank=1):
        """What rank 1 finds: argv and environment."""
        script = self.write(DUMP, "dump.py")
        result = self.torchrun("--nproc-per-node", "2", *options, script, self.folder / "found", *arguments,
                               program=program, env=env)
        self.assert_ok(result)
        return json.loads((self.folder / f"found-{rank}").read_text())
