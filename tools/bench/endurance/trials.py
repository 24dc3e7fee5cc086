"""The faults of a soak: each trial starts a job, breaks something, waits for the end and returns the failures.

A trial is a function (place, chance, settings) -> Outcome. TRIALS lists them by name, with their requirements.
"""

import contextlib
import dataclasses
import os
import signal
import subprocess
import tempfile
import threading
import time

from . import count

GONE_S = 2.0       # time for the others to end after a SIGKILL
PATIENCE_S = 120.0  # for conditions that take milliseconds on an idle machine
GROWTH_KIB = 1024


@dataclasses.dataclass
class Settings:
    restarts: int = 1000  # of one job, in the trial "restart"
    jobs: int = 100       # in the trial "short"


@dataclasses.dataclass
class Outcome:
    what: str
    seconds: float
    failures: list


def run_all_ready(place, **more):
    """Starts a job and waits until all ranks and their children run."""
    job = place.start(**more)
    for _ in range(place.ranks):
        job.stdout.readline()
    end = time.monotonic() + PATIENCE_S
    while len(now := place.processes()) != place.expected() or list(now.values()).count("child") != place.ranks:
        if job.poll() is not None:
            raise SystemExit(f"soak: dtrun ended by itself with {job.returncode}: {job.stderr.read()}")
        if time.monotonic() > end:
            raise SystemExit(f"soak: {place.expected()} processes expected, these run: {sorted(now.values())}")
        time.sleep(0.001)
    return job, now


def what_stayed(place):
    return [f"{kind} {pid} survived" for pid, kind in place.processes().items()] + place.left()


def wait_until_gone(place, job, what, patience_s):
    """The outcome once no process of the job lives; survivors after `patience_s` are failures, and are killed."""
    begin = time.monotonic()
    while (left := place.processes()) and time.monotonic() - begin < patience_s:
        job.poll()
        time.sleep(0.002)
    seconds = time.monotonic() - begin
    for survivor in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(survivor, signal.SIGKILL)
    output = job.communicate()
    failures = [f"{kind} {survivor} survived" for survivor, kind in left.items()] + place.left()
    if failures:
        failures.append(f"dtrun said: {output[1][-2000:]}")
    return Outcome(what, seconds, failures)


def end_when_asked(place, job, what):
    """SIGTERM to a job that survived `what`; if it had already ended, that is a failure."""
    ended = job.poll()
    if ended is None:
        job.send_signal(signal.SIGTERM)
    outcome = wait_until_gone(place, job, what, 60)
    if ended is not None:
        outcome.failures.append(f"the job ended with {ended} by the {what}")
    return outcome


def kill(place, chance, _):
    """SIGKILL to any one process of the job."""
    job, now = run_all_ready(place)
    pid, kind = chance.choice(sorted(now.items()))
    os.kill(pid, signal.SIGKILL)
    return wait_until_gone(place, job, f"kill {kind}", GONE_S)


def stop(place, chance, _):
    """SIGSTOP to any one process, SIGCONT a moment later; the job must then end on request."""
    job, now = run_all_ready(place)
    pid, kind = chance.choice(sorted(now.items()))
    with contextlib.suppress(ProcessLookupError):  # a job may end because of the stop, with a message
        os.kill(pid, signal.SIGSTOP)
        time.sleep(chance.uniform(0.05, 1.5))
        os.kill(pid, signal.SIGCONT)
    if job.poll() is None:
        job.send_signal(signal.SIGTERM)
    return wait_until_gone(place, job, f"stop {kind}", 30)


def lost_network(place, chance, _):
    """A host's link goes down and stays down until the whole job is gone; its sshd notices only afterwards."""
    job, _now = run_all_ready(place, sets=["cluster.lost_after=1s"])
    begin = time.monotonic()
    with place.link_down(chance.randrange(1, place.hosts)):
        while set(place.processes().values()) - {"sshd"} and time.monotonic() - begin < 60:
            job.poll()
            time.sleep(0.01)
        seconds = time.monotonic() - begin
    outcome = wait_until_gone(place, job, "lost network", 60)
    return Outcome(outcome.what, seconds, outcome.failures)


def flapping_link(place, chance, _):
    """A host's link goes down and up again, each time within the limit; the job continues, and ends on request."""
    job, _now = run_all_ready(place)
    host = chance.randrange(1, place.hosts)
    for _ in range(5):
        with place.link_down(host):
            time.sleep(chance.uniform(0.05, 0.5))
        time.sleep(chance.uniform(0.05, 0.5))
    return end_when_asked(place, job, "flapping link")


def full_disk(place, _chance, _settings):
    """The run directory's disk fills while ranks print; the job continues and ends by itself."""
    with tempfile.TemporaryDirectory(prefix="soak-disk-") as disk:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", disk], check=True)
        try:
            job = place.start(command=("sh", "-c", "yes | head -c 2000000"), sets=[f"logs.dir={disk}/runs"])
            begin = time.monotonic()
            output, errors = job.communicate(timeout=PATIENCE_S)
            outcome = Outcome("full disk", time.monotonic() - begin, what_stayed(place))
            if job.returncode != 0:
                outcome.failures.append(f"the job ended with {job.returncode}: {errors[-2000:]}")
            if output.count("y") < place.ranks * 1000000:
                outcome.failures.append(f"{output.count('y')} of {place.ranks * 1000000} lines came through")
            return outcome
        finally:
            subprocess.run(["umount", "-l", disk], check=True)


def clock_step(place, chance, _):
    """The clock jumps by an hour and back; the job continues, and ends on request."""
    job, _now = run_all_ready(place)
    step_s = chance.choice((-3600, 3600))
    time.clock_settime(time.CLOCK_REALTIME, time.time() + step_s)
    time.sleep(0.5)
    time.clock_settime(time.CLOCK_REALTIME, time.time() - step_s)
    return end_when_asked(place, job, "clock step")


def restart(place, _chance, settings):
    """A rank fails in each of many generations; dtrun's own processes must not hold more than before."""
    begin = time.monotonic()
    # A program that fails at once in its first generation is not restarted.
    failing = "echo generation $DTRUN_GENERATION; [ $DTRUN_GENERATION = 0 ] && sleep 1.2; [ $RANK = 0 ] && exit 3; exec sleep 1000"
    job = place.start(command=("sh", "-c", failing),
                      sets=[f"restart.max={settings.restarts}", "restart.backoff=0s"])
    first, last, zombies, said = {}, {}, 0, []
    reader = threading.Thread(target=lambda: said.extend(job.communicate()))
    reader.start()
    while reader.is_alive():
        own = [job.pid, *count.children_of(job.pid)]  # guard and agent
        zombies = max(zombies, len(count.zombies_of(own)))
        for pid in own:
            if holding := count.Holding.of(pid):
                last[pid] = holding
                if time.monotonic() - begin > 3:  # once each resource has been used
                    first.setdefault(pid, holding)
        reader.join(0.2)
    failures = what_stayed(place)
    for pid, before in first.items():
        after = last[pid]
        if after.memory_kib - before.memory_kib > GROWTH_KIB or after.descriptors > before.descriptors + 20 \
                or after.mappings > before.mappings + 50:
            failures.append(f"process {pid} of dtrun grew: {after.growth(before)}")
    if zombies > 50:
        failures.append(f"{zombies} zombies at once")
    if job.returncode != 3:
        failures.append(f"the job ended with {job.returncode} instead of its rank's 3: {said[1][-2000:]}")
    if f"generation {settings.restarts}\n" not in said[0]:
        failures.append(f"the last generation was never reached: {said[0][-200:]}")
    grown = "; ".join(sorted(last[pid].growth(before) for pid, before in first.items()))
    return Outcome(f"{settings.restarts} restarts ({grown or 'too short to see growth'})", time.monotonic() - begin, failures)


def short_jobs(place, _chance, settings):
    """Many jobs that end at once by themselves."""
    failures = []
    begin = time.monotonic()
    for _ in range(settings.jobs):
        job = place.start(command=("true",))
        _, errors = job.communicate(timeout=PATIENCE_S)
        if job.returncode != 0:
            failures.append(f"a job of `true` ended with {job.returncode}: {errors[-500:]}")
    failures += what_stayed(place)
    return Outcome(f"{settings.jobs} short jobs", time.monotonic() - begin, failures)


# name -> (trial, relative frequency, requirement: root, several hosts, or an explicit request by name)
TRIALS = {
    "kill": (kill, 100, ""),
    "stop": (stop, 20, ""),
    "restart": (restart, 1, ""),
    "short": (short_jobs, 2, ""),
    "disk": (full_disk, 5, "root"),
    "network": (lost_network, 5, "hosts"),
    "flap": (flapping_link, 5, "hosts"),
    "clock": (clock_step, 5, "asked"),
}
