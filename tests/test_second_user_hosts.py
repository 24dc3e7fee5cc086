"""Another user of the machine, who tries to reach a job on several hosts: docs/security.md row by row."""

import os
import secrets
import select
import subprocess
import sys
import time
import unittest

from support.cluster import ClusterTest, open_lab
from support.job import PATIENCE_S, main, skip, until
from support.lab import why_not

SLEEP = "trap '' USR1; echo ready; while [ ! -e {}/go ]; do sleep 0.05; done"

# Connects to every port of the window, over and over, with noise; prints when a connection was accepted, and fails when one of
# those has answered.
KNOCK = """
import os, select, socket, sys
''.encode('idna')
os.setgroups([]); os.setresgid(4242, 4242, 4242); os.setresuid(4242, 4242, 4242)
held, answered, count = [], 0, 0
while not select.select([0], [], [], 0)[0]:
    for port in range(31000, 31064):
        one = socket.socket()
        one.settimeout(1)
        try:
            one.connect((sys.argv[1], port))
            one.sendall(os.urandom(1 + port % 200))
        except OSError:
            one.close()
            continue
        if not count:
            print('reached', flush=True)
        count += 1
        held.append(one)
    for one in list(held):
        try:
            got = one.recv(1, socket.MSG_DONTWAIT)
        except BlockingIOError:
            continue
        except OSError:
            got = b''
        answered += len(got)
        held.remove(one)
        one.close()
    while len(held) > 500:
        held.pop(0).close()
sys.exit(answered != 0)
"""

LAB = None


@unittest.skipIf(why_not(), why_not())
class Hosts(ClusterTest):
    """A job on several hosts: its control port, and who was a member once."""

    def manual(self, *command, more=""):
        key = self.write(secrets.token_hex(32), "key")
        key.chmod(0o600)
        return self.config(command, more=f'connect = "manual"\nroot = "{LAB.address(0)}:29400"\n'
                           f'key_file = "{key}"\njoin_timeout = "60s"\n{more}')

    def test_refuse_an_old_key(self):
        file = self.manual("sh", "-c", SLEEP.format(self.folder))
        old = self.write(secrets.token_hex(32), "old-key")
        old.chmod(0o600)
        jobs = [self.start_on(i, "--config", file, "--host-index", i) for i in range(3)]
        for rank in range(6):
            until(lambda: "ready" in jobs[0].log(rank), f"rank {rank}")
        # While the job runs, and with the place of a host that is there.
        former = self.start_on(1, "--config", file, "--host-index", 1, "--set", f"cluster.key_file={old}",
                               "--set", "cluster.join_timeout=2s").finish()
        self.assertEqual(former.code, 2, str(former))
        (self.folder / "go").touch()
        for job in jobs:
            self.assert_ok(job.finish())

    def test_are_not_ended_by_noise_at_the_control_port(self):
        file = self.manual("sh", "-c", SLEEP.format(self.folder))
        jobs = [self.start_on(i, "--config", file, "--host-index", i) for i in range(3)]
        for rank in range(6):
            until(lambda: "ready" in jobs[0].log(rank), f"rank {rank}")
        noise = ("import os, socket, sys\n''.encode('idna')\nos.setgroups([]); os.setresgid(4242, 4242, 4242); os.setresuid(4242, 4242, 4242)\n"
                 "for text in (b'', bytes(5000), b'\\xff' * 5000, os.urandom(5000)):\n"
                 " for _ in range(10):\n"
                 "  with socket.create_connection((sys.argv[1], 29400), 5) as s:\n"
                 "   try: s.sendall(text)\n"
                 "   except OSError: pass\n")
        stranger = subprocess.run([*self.lab.enter(1, self.folder), sys.executable, "-c", noise, LAB.address(0)],
                                  capture_output=True, text=True, timeout=120)
        self.assertEqual(stranger.returncode, 0, stranger.stderr)
        (self.folder / "go").touch()
        for job in jobs:
            self.assert_ok(job.finish())

    def test_prove_their_network_whatever_a_stranger_says_meanwhile(self):
        file = self.manual("true", more='port_range = "31000-31063"\n')  # where hosts listen for connectivity checks
        stranger = subprocess.Popen([*self.lab.enter(1, self.folder), sys.executable, "-c", KNOCK, LAB.address(0)],
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(stranger.kill)
        deadline = time.monotonic() + PATIENCE_S
        while not select.select([stranger.stdout], [], [], 0)[0]:  # until it has reached one
            self.assertLess(time.monotonic(), deadline, "the stranger never reached an open port")
            for job in [self.start_on(i, "--config", file, "--host-index", i) for i in range(3)]:
                self.assert_ok(job.finish())
        said, _ = stranger.communicate(timeout=PATIENCE_S)
        self.assertEqual(said, "reached\n")
        self.assertEqual(stranger.returncode, 0, "a peer answered without a seal")

    def test_keep_a_key_that_others_can_read_out(self):
        file = self.manual("true")
        (self.folder / "key").chmod(0o644)
        result = self.start_on(0, "--config", file, "--host-index", 0).finish()
        self.assertEqual(result.code, 2, str(result))
        self.assertIn("key", result.err)


def setUpModule():
    global LAB
    if os.geteuid() != 0:
        skip("only root can be two users")
    if not why_not():
        LAB = open_lab()


if __name__ == "__main__":
    main()
