"""Ranks and jobs in containers: namespaces and a seccomp profile, of which no part may be needed but the sockets."""

import os
import re
import shutil
import subprocess
import sys

from support.job import BUILD, PATIENCE_S, RANK, SOURCE, JobTest, Result, main

RANKS = 2
SUM = f"rank 0 of {RANKS} over %s: sum {RANKS * (RANKS + 1) // 2}\n"
DENY = [sys.executable, "-S", str(SOURCE / "tests" / "support" / "deny.py")]
# A container has a /dev/shm of its own, and does not see where dtrun's sockets are.
HIDE = 'for place in /dev/shm "$XDG_RUNTIME_DIR"; do mount -t tmpfs tmpfs "$place" || exit 9; done; '
OWN_PROC = "mount -t proc proc /proc; "
ROOT = [] if os.geteuid() == 0 else ["-U", "--map-root-user"]  # who may not make the others without


def unshare(*namespaces, inside=""):
    return ["unshare", *ROOT, *namespaces, *(["sh", "-c", inside + 'exec "$@"', "box"] if inside else [])]


PID = ("-m", "-p", "-i", "--fork", "--kill-child")
RANK_BOXES = {
    "user namespace": unshare("-U", "--map-root-user"),
    "PID namespace": unshare(*PID, inside=OWN_PROC),
    "mount namespace": unshare("-m", inside=HIDE),
    "all of them": unshare("-U", "--map-root-user", *PID, inside=OWN_PROC + HIDE),
    "no /proc": unshare("-m", inside="mount -t tmpfs tmpfs /proc; "),
    "seccomp, EPERM": [*DENY, "EPERM", "--"],
    "seccomp, ENOSYS": [*DENY, "ENOSYS", "--"],
}
JOB_BOXES = {
    "user namespace": ["unshare", "-U", "--map-current-user"],
    "all of them": unshare("-U", "--map-root-user", *PID, inside=OWN_PROC + "mount -t tmpfs tmpfs /dev/shm; "),
    "seccomp, EPERM": [*DENY, "EPERM", "--"],
    "seccomp, ENOSYS": [*DENY, "ENOSYS", "--"],
}
# In these a rank cannot map the memory of another one.
APART = ("user namespace", "PID namespace", "all of them", "no /proc")
BACKENDS = [name for name in ("ucx", "mpi") if (BUILD / "lib" / "dtrun" / "plugins" / f"libdtrun_backend_{name}.so").exists()]
FALLEN_BACK = " cannot share memory, "


def works(box):
    return subprocess.run([*box, "true"], capture_output=True, env={**os.environ, "XDG_RUNTIME_DIR": "/mnt"}).returncode == 0


class Containers(JobTest):
    def environment(self, **more):
        place = self.folder / "run"
        place.mkdir(mode=0o700, exist_ok=True)
        return super().environment(XDG_RUNTIME_DIR=str(place), HOME=str(self.folder), **more)

    def check(self, result, over):
        self.assert_ok(result)
        self.assertIn(SUM % over, re.sub(r"\[\d+\] ", "", result.out), str(result))
        # A container is no reason to see less.
        self.assertNotIn("dtrun will not see", result.err, str(result))

    def inside(self, box, *arguments, program=(str(RANK),), ranks=RANKS):
        """dtrun itself in a container."""
        process = subprocess.run([*box, str(BUILD / "bin" / "dtrun"), "-n", str(ranks), *arguments, *program], cwd=self.folder,
                                 env=self.environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S)
        return Result(process.returncode, process.stdout, process.stderr)

    def each(self, boxes):
        """The names of those that work here; the others are told as skipped."""
        for name, box in boxes.items():
            if works(box):
                yield name, box
            else:
                with self.subTest(name):
                    self.skipTest(f"{' '.join(box[:4])} does not work here")

    def test_a_rank_in_a_container(self):
        for name, box in self.each(RANK_BOXES):
            with self.subTest(name):
                result = self.ranks(RANKS, *box, RANK)
                self.check(result, "gloo" if name in APART else "shm")
                self.assertEqual(result.err.count(FALLEN_BACK), 1 if name in APART else 0, str(result))
            for backend in BACKENDS:
                if (name, backend) == ("no /proc", "ucx"):  # UCX itself reads /proc/sys/net
                    continue
                with self.subTest(name, backend=backend):
                    self.check(self.ranks(RANKS, *box, RANK, sets=[f"backend.name={backend}", "comm.local=none"]), backend)

    def test_a_job_in_a_container(self):
        for name, box in self.each(JOB_BOXES):
            with self.subTest(name):
                self.check(self.inside(box), "shm")
            for backend in BACKENDS:
                with self.subTest(name, backend=backend):
                    self.check(self.inside(box, "--set", f"backend.name={backend}", "--set", "comm.local=none"), backend)

    def test_one_rank_in_a_container_and_one_outside(self):
        box = RANK_BOXES["user namespace"]
        if not works(box):
            self.skipTest("no user namespace may be made here")
        for rank in range(RANKS):
            with self.subTest(rank):
                choose = f'[ $RANK = {rank} ] && exec {" ".join(box)} "$0"; exec "$0"'
                result = self.ranks(RANKS, "sh", "-c", choose, RANK)
                self.check(result, "gloo")
                self.assertRegex(result.err, FALLEN_BACK + r".*gloo .*shm: rank \d .*user namespace.* rank \d; ")

    def test_ucx_names_the_shared_memory_that_it_lacks(self):
        box = unshare("-m", inside="mount -t tmpfs -o size=1m tmpfs /dev/shm; ")
        if "ucx" not in BACKENDS or not works(box):
            self.skipTest("no UCX here, or no mount namespace may be made")
        result = self.inside(box, "--set", "backend.name=ucx", "--set", "comm.local=none", ranks=4)
        self.assertNotEqual(result.code, 0, str(result))
        self.assertRegex(result.out + result.err, r"/dev/shm .*\d\.\d .*1\.0 MiB")
        self.assertRegex(result.err, r"known failure: /dev/shm .*\(ucx-shm-full; ")
        self.assertIn("class: out-of-memory", result.err)

    def test_what_a_job_in_a_container_leaves_behind_is_ended(self):
        # tearDown looks for what is left.
        for name, box in self.each({name: JOB_BOXES[name] for name in ("seccomp, EPERM", "seccomp, ENOSYS")}):
            with self.subTest(name):
                result = self.inside(box, "--", program=["sh", "-c", "setsid sleep 1000 & sleep 1000 & exit 4"])
                self.assertEqual(result.code, 4, str(result))

    def test_bubblewrap(self):
        if not shutil.which("bwrap"):
            self.skipTest("bubblewrap is not installed")
        box = ["bwrap", "--unshare-user", "--unshare-pid", "--unshare-ipc", "--dev-bind", "/", "/", "--proc", "/proc", "--tmpfs", "/dev/shm"]
        if not works(box):
            self.skipTest("bubblewrap does not work here")
        self.check(self.ranks(RANKS, *box, RANK), "gloo")
        self.check(self.inside(box), "shm")

    def test_podman(self):
        if not shutil.which("podman"):
            self.skipTest("podman is not installed")
        box = ["podman", "run", "--rm", "--env-host", "--network=host", "--ipc=private", "--security-opt=label=disable", "--rootfs", "/"]
        if not works(box):
            self.skipTest("podman does not work here")
        self.check(self.ranks(RANKS, *box, RANK), "gloo")


if __name__ == "__main__":
    main()
