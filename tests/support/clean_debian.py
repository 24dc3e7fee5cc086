"""A clean Debian 12 to try installations in: a copy of the one that `tools/setup debian` makes in build/debian.

DTRUN_DEBIAN_ROOT names another. Each test starts from a clean copy and gets packages from the mirrors of that copy.
"""

import os
import shutil
import subprocess
from pathlib import Path

from support.job import SOURCE, JobTest

ROOT = Path(os.environ.get("DTRUN_DEBIAN_ROOT", SOURCE / "build/debian"))


def reason_without():
    """Why there is none here; "" where there is one."""
    if os.getuid() != 0:
        return "only root can change its root folder"
    if not (ROOT / "usr/bin/apt-get").exists():
        return f"{ROOT} is missing: `tools/setup debian` makes a clean Debian 12 there"
    return ""


class CleanDebianTest(JobTest):
    def setUp(self):
        super().setUp()
        self.root = self.folder / "root"
        subprocess.run(["cp", "-a", ROOT, self.root], check=True)
        shutil.copy("/etc/resolv.conf", self.root / "etc/resolv.conf")
        self.inside("apt-get update -qq")

    def inside(self, command, code=0):
        """What a command prints in the clean system, as root."""
        mounts = ('mount -t proc proc "$1/proc" && mount --rbind /sys "$1/sys" && mount --rbind /dev "$1/dev" && '
                  'exec chroot "$1" bash -euo pipefail -c "cd /srv && $2"')
        done = subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c", mounts, "sh", self.root, command],
                              env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C",
                                   **dict([self.mark.split("=")])},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        self.assertEqual(done.returncode, code, f"{command}\n{done.stdout}")
        return done.stdout

    def install(self, *packages):
        return self.inside(f"apt-get install -y -qq --no-install-recommends {' '.join(packages)} 2>&1")
