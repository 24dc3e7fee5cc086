"""What README and docs/install.md tell people to type to install, line by line, in a copy of this system that is thrown away.

The copy is an overlay over /, so what the build folder has is not built again. Runs as root, where overlays can be mounted; the
line with the wheel where `tools/setup wheel` has run.
"""

import os
import re
import subprocess

from support.job import BUILD, SOURCE, JobTest, main, skip

INSTALL = (SOURCE / "docs/install.md").read_text()
README = (SOURCE / "README.md").read_text()
TRAIN = "import dtrun\nwith dtrun.init() as world:\n    print(f'rank {world.rank} of {world.size}')\n"
ENTER = """
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/changes,workdir=$1/work" "$1/root"
for place in dev proc sys; do mount --rbind "/$place" "$1/root/$place"; done
exec chroot "$1/root" bash -euo pipefail -c "$2"
"""


def lines_of_readme():
    block = re.search(r"(?ms)^Install it, .*?\n\n(.*?)\n\n", README)[1]
    return [line.split("  #")[0].strip() for line in block.splitlines()]


def block_of_install(heading):
    return re.search(rf"(?ms)^## {heading}\n.*?^```sh\n(.*?)^```$", INSTALL)[1].splitlines()


class Recipes(JobTest):
    def setUp(self):
        super().setUp()
        for name in "changes", "work", "root":
            (self.folder / name).mkdir()
        (self.folder / "apt.conf").write_text('APT::Get::Assume-Yes "true";\n')
        self.write(TRAIN, "train.py")

    def inside(self, command):
        """Runs it in the clone, in the copy of this system; gives what it printed."""
        environment = self.environment(APT_CONFIG=str(self.folder / "apt.conf"), DEBIAN_FRONTEND="noninteractive")
        environment["PATH"] = f"{self.folder}/venv/bin:/opt/dtrun/bin:{os.environ['PATH']}"
        environment.pop("PYTHONPATH", None)
        done = subprocess.run(["unshare", "--mount", "--propagation", "private", "bash", "-euc", ENTER, "enter", self.folder,
                               f"cd '{SOURCE}'\n{command}"],
                              env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
        return done.stdout

    def assert_runs(self):
        self.assertEqual(self.inside("cd / && dtrun -q -n 2 --set logs.dir=/tmp/runs echo hello").count("hello\n"), 2)

    def test_the_lines_of_readme(self):
        pack, install, purge, into_a_folder, _ = lines_of_readme()
        self.inside(pack)
        listed = self.inside("dpkg-deb -c build/release/packages/dtrun-sdk_*.deb")
        self.assertIn("./usr/bin/dtrun-conformance\n", listed)
        self.assertIn("./usr/include/dtrun/dtrun.h\n", listed)
        self.inside(install)
        self.assertEqual(self.inside("command -v dtrun"), "/usr/bin/dtrun\n")
        self.assert_runs()
        self.inside(purge)
        self.inside("! command -v dtrun")
        self.inside(into_a_folder)
        self.assertEqual(self.inside("command -v dtrun"), "/opt/dtrun/bin/dtrun\n")
        self.assert_runs()

    def test_the_line_with_the_wheel(self):
        if not (SOURCE / "build/wheel-tools").exists():
            self.skipTest("because `tools/setup wheel` has not run")
        self.inside(f"python3 -m venv {self.folder}/venv")
        self.inside(lines_of_readme()[-1])
        self.assertEqual(self.inside(f"dtrun -q -n 2 --set logs.dir=/tmp/runs python {self.folder}/train.py").count(" of 2\n"), 2)

    def test_the_folder_has_what_the_page_lists(self):
        self.inside("\n".join(block_of_install("Into a folder")))
        for row in re.findall(r"(?m)^\| `(bin|lib)` \| (.*) \|$", INSTALL):
            for name in re.findall(r"`([^`]+)`", row[1]):
                if name != "dtrun-train" or (BUILD / "bin/dtrun-train").exists():
                    self.assertTrue(self.inside(f"find /opt/dtrun/{row[0]} -path '*/{name}'"), name)
        self.assert_runs()


def overlays():
    probe = ('d=$(mktemp -d) && mkdir $d/u $d/w $d/r && mount -t overlay overlay -o lowerdir=/,upperdir=$d/u,workdir=$d/w $d/r; code=$?; '
             'umount $d/r 2>/dev/null; rm -rf $d; exit $code')
    return subprocess.run(["unshare", "--mount", "--propagation", "private", "bash", "-c", probe],
                          capture_output=True, check=False).returncode == 0


if __name__ == "__main__":
    if os.geteuid() != 0 or not overlays():
        skip("root and a kernel that mounts overlays over / are needed")
    if BUILD != SOURCE / "build/release":
        skip(f"the lines build in build/release, and this test is of {BUILD}")
    if subprocess.run(["which", "dpkg-deb"], capture_output=True, check=False).returncode != 0:
        skip("dpkg-deb is missing: this system does not install .deb packages")
    main()
