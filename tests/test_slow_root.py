"""A root that takes no output of other hosts for a while: their agents keep little of it, and nothing is lost."""

import hashlib
import os
import signal
import time
from pathlib import Path

from support.cluster import open_lab
from support.faults import FaultTest
from support.job import main, nightly, until
from support.lab import find, run

MIB = 1 << 20
# Rank 2 prints 200 MiB of lines that differ and says how far it has come; the others wait for it.
PRINT = """if [ $RANK = 2 ]; then
  i=0; while [ $i -lt 200 ]; do seq $((i * 131072 + 1000000)) $(((i + 1) * 131072 + 999999)); i=$((i + 1)); echo $i > %s/printed; done
fi"""


def setUpModule():
    open_lab()


def memory_of(pid):
    """Resident bytes at most."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


class SlowRoot(FaultTest):
    def start(self, script, more=""):
        self.printed = self.folder / "printed"
        job = self.start_job(3, "sh", "-c", "echo the rank; until [ -e go ]; do sleep 0.05; done; " + script, more=more)
        for rank in range(3):
            job.wait_for_line(rank, "the rank")
        return job

    def stop_root(self, job):
        """Of both, since a stopped agent alone is let go on."""
        root = self.victim(job, "root", 3)
        for pid in (job.pid, root):
            os.kill(pid, signal.SIGSTOP)
            self.wait_for_state(pid, "T")
        return root

    def wait_until_the_rank_stands(self):
        """It has printed something, and then for a while nothing more."""
        until(self.printed.exists, "the first lines")
        seen, since = None, time.monotonic()
        while time.monotonic() - since < 1:
            now = self.printed.read_text()
            if now != seen:
                seen, since = now, time.monotonic()
            time.sleep(0.02)
        return int(seen or 0)

    @nightly
    def test_its_agents_stay_small_and_every_byte_arrives(self):
        job = self.start(PRINT % self.folder, more='lost_after = "10m"\n')
        agent = self.victim(job, "agent", 3)
        root = self.stop_root(job)
        before = memory_of(agent)
        (self.folder / "go").touch()
        printed = self.wait_until_the_rank_stands()
        self.assertLess(printed, 100, "the rank was not held up")
        self.assertLess(memory_of(agent) - before, 32 * MIB)
        for pid in (root, job.pid):
            os.kill(pid, signal.SIGCONT)
        self.assert_ok(job.finish())
        expected = hashlib.sha256()
        expected.update(b"the rank\n")
        for i in range(200):
            first = i * 131072 + 1000000
            expected.update(b"".join(b"%d\n" % n for n in range(first, first + 131072)))
        got = hashlib.sha256((job.run_dir() / "rank-2.out").read_bytes())
        self.assertEqual(got.hexdigest(), expected.hexdigest())

    def test_an_interrupt_passes_by_output_that_waits(self):
        job = self.start("trap 'touch interrupted-$RANK; exit 0' INT; " + PRINT % self.folder)
        narrow = [*self.lab.enter(2), find("tc"), "qdisc"]
        run(*narrow, "add", "dev", "eth0", "root", "tbf", "rate", "1mbit", "burst", "16kb", "latency", "50ms")
        try:
            (self.folder / "go").touch()
            self.wait_until_the_rank_stands()
            job.signal(signal.SIGINT)
            until((self.folder / "interrupted-2").exists, "the interrupt on the host behind the narrow link")
        finally:
            run(*narrow, "del", "dev", "eth0", "root")
        result = job.finish()
        self.assertEqual(result.code, 130, str(result)[-2000:])


if __name__ == "__main__":
    main()
