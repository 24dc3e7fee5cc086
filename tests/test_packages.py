"""The .deb packages, on a clean Debian 12: they install, run, upgrade and leave nothing behind.

Runs where `tools/setup debian` has made such a system; support/clean_debian.py says where.
"""

import re
import shutil
import subprocess

from support.clean_debian import CleanDebianTest, reason_without
from support.hardening import elf_files, weaknesses
from support.job import BUILD, SOURCE, main, skip

NEXT = "0.99.0"  # a later version than any
IN_PYTHON = """
import array, dtrun
with dtrun.init() as world:
    x = array.array("d", [world.rank + 1.0])
    world.allreduce(x)
    print(f"rank {world.rank} of {world.size}: the sum is {x[0]:g}")
"""


class Packages(CleanDebianTest):
    def pack(self, name, *definitions):
        """Packages in the clean system's folder /NAME."""
        folder = self.folder / name
        done = subprocess.run(["cpack", "--config", BUILD / "CPackConfig.cmake", "-B", folder, *definitions],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertNotIn("CMake Warning", done.stdout)
        (self.root / name).mkdir()
        for package in folder.glob("*.deb"):
            shutil.copy(package, self.root / name)

    def run_what_is_installed(self):
        self.assertEqual(self.inside("dtrun -q -n 2 echo hello").count("hello\n"), 2)
        plugins = self.inside("dtrun plugins list")
        for name in ("gloo", "cuda", "nccl", "ucx", "per-process", "torchrun"):  # one that does not load has no version
            self.assertRegex(plugins, rf"(?m)^\S+ +{name} +\d+\.")
        (self.root / "srv/train.py").write_text(IN_PYTHON)
        self.assertIn("rank 1 of 2: the sum is 3", self.inside("dtrun -q -n 2 python3 train.py"))
        # The program of docs/install.md, by its own commands.
        page = (SOURCE / "docs/install.md").read_text()
        (self.root / "srv/sum.c").write_text(re.search(r"(?ms)^```c file=sum.c\n(.*?)^```$", page)[1])
        for command in re.search(r"(?ms)^```sh packages\n(.*?)^```$", page)[1].strip().splitlines():
            output = self.inside(command)
        self.assertIn("rank 1 of 2: the sum is 3", output)
        self.assertIn("rank 1 of 2: the sum is 3", self.inside("dtrun -n 2 --set comm.local=none --set backend.name=gloo ./sum"))

    def test_install_run_upgrade_purge(self):
        before = self.inside("find / -xdev -name '*dtrun*' -o -xdev -name 'libglp*'")
        self.pack("first")
        names = sorted(path.name.split("_")[0] for path in (self.root / "first").iterdir())
        self.assertLessEqual({"dtrun", "dtrun-backend-nccl", "dtrun-backend-ucx", "dtrun-sdk", "python3-dtrun"}, set(names))
        for name in names:  # what the archive cannot give is told here, also of those that are too large to install
            self.inside(f"apt-get install -s -qq --no-install-recommends /first/{name}_*.deb /first/dtrun_*.deb")
        self.install("/first/dtrun_*.deb", "/first/dtrun-sdk_*.deb", "/first/dtrun-backend-nccl_*.deb",
                     "/first/dtrun-backend-ucx_*.deb", "/first/python3-dtrun_*.deb", "gcc", "libc6-dev", "pkg-config")
        self.run_what_is_installed()
        usr = self.root / "usr"
        files = elf_files([*(usr / "bin").glob("dtrun*"), *(usr / "lib").glob("libdtrun*"), *(usr / "lib/dtrun").rglob("*")])
        self.assertLessEqual({"dtrun", "dtrun-probe", "libdtrun_backend_nccl.so"}, {file.name for file in files})
        self.assertEqual({file.name: weak for file in files if (weak := weaknesses(file))}, {})
        for name in ("copyright", "changelog.Debian.gz", "LICENSE", "configs/quickstart.toml"):
            self.assertTrue((self.root / "usr/share/doc/dtrun" / name).exists(), name)
        for name in ("man/man1/dtrun-plan.1.gz", "bash-completion/completions/dtrun", "zsh/vendor-completions/_dtrun",
                     "fish/vendor_completions.d/dtrun.fish"):
            self.assertTrue((self.root / "usr/share" / name).exists(), name)

        self.pack("second", "-D", f"CPACK_PACKAGE_VERSION={NEXT}")
        self.install("/second/dtrun_*.deb", "/second/dtrun-sdk_*.deb", "/second/dtrun-backend-nccl_*.deb",
                     "/second/dtrun-backend-ucx_*.deb", "/second/python3-dtrun_*.deb")
        self.assertEqual(self.inside("dpkg-query -W -f '${Version} ' dtrun dtrun-sdk"), f"{NEXT}-1 {NEXT}-1 ")
        self.run_what_is_installed()

        self.inside("rm -rf /first /second /srv/* && apt-get purge -y -qq 'dtrun*' python3-dtrun")
        self.assertEqual(self.inside("find / -xdev -name '*dtrun*' -o -xdev -name 'libglp*'"), before)


if __name__ == "__main__":
    if shutil.which("dpkg-shlibdeps") is None:
        skip("dpkg-shlibdeps is missing: `tools/setup debian` installs it")
    if reason := reason_without():
        skip(reason)
    main()
