#!/usr/bin/env python3
"""PyTorch's own tests of torch.distributed, which its wheel holds, over dtrun in place of gloo.

  own_tests.py DTRUN [-n 4] [-k TEXT]      prints a line for each test, and the sums

The tests start processes by themselves; here the ranks are dtrun's, which go through the tests together until one fails. Then a
new job goes on behind it. Needs torch 2.5 or later and expecttest, and the dtrun package as installed, for its entry point.
"""

import argparse
import faulthandler
import os
import subprocess
import sys
import tempfile
import traceback
import unittest
from collections import Counter
from datetime import timedelta
from pathlib import Path

os.environ.setdefault("BACKEND", "gloo")  # what the tests ask for
LIMIT_S = 120  # for one test


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dtrun", nargs="?")
    parser.add_argument("-n", type=int, default=4)
    parser.add_argument("-k", default="", help="only tests with this in their names")
    parser.add_argument("--backend", default="dtrun", help='"script": torch\'s gloo, to compare')
    parser.add_argument("--at-once", type=int, default=1000, help="tests of a job")
    parser.add_argument("--after", default="", help="begin behind this test")
    options = parser.parse_args()
    if "DTRUN_RANK" in os.environ:
        return rank_of(options)
    sums, after = Counter(), options.after
    while after is not None:
        with tempfile.TemporaryDirectory() as folder:
            after = job(options, after, sums, Path(folder))
    print(", ".join(f"{count} {word}" for word, count in sorted(sums.items())))
    return 0


def job(options, after, sums, folder):
    """Runs the tests behind `after`; returns the one that ended the job, or None. `folder` is what the tests' launcher makes."""
    for name in ("barrier", "test_dir", "init_dir"):
        (folder / name).mkdir()
    environment = dict(os.environ, TEMP_DIR=str(folder), INIT_METHOD=f"file://{folder}/init_dir/shared_init_file")
    words = [options.dtrun, "-q", "-n", options.n, "--torch-backend", options.backend]
    words += ["--set", "output.prefix=none", "--set", "job.grace=2s", "--"]
    words += [sys.executable, __file__, "-k", options.k, "--at-once", options.at_once, "--after", after]
    process = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, text=True, env=environment)
    current, seen = None, []
    for line in process.stdout:
        word, _, rest = line.partition(" ")
        if word == "begin":
            current = rest.strip()
        elif word in ("passed", "skipped", "failed") and current is not None:
            sums[word] += 1
            print(line, end="", flush=True)
            seen.append(current)
            current = None
    code = process.wait()
    if code == 0 and current is None and len(seen) < options.at_once:
        return None
    if current is not None:
        sums["failed"] += 1
        print(f"failed {current}: the job ended", flush=True)
    if current is None and not seen:
        raise SystemExit(f"the job ended with code {code} before its first test; its output is above")
    return current or seen[-1]


def rank_of(options):
    import torch.distributed as dist
    from torch.testing._internal.common_distributed import TEST_SKIPS
    from torch.testing._internal.distributed import distributed_test as own

    class Tests(own.TestDistBackend, own.DistributedTest._DistTestBase):
        pass

    codes = {skip.exit_code: skip.message for skip in TEST_SKIPS.values()}
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    store = dist.FileStore(f"{os.environ['TEMP_DIR']}/own-tests", world)  # the port is the tests'
    names = [name for name in unittest.TestLoader().getTestCaseNames(Tests) if options.k in name]
    begin = names.index(options.after) + 1 if options.after in names else 0
    for name in names[begin : begin + options.at_once]:
        if rank == 0:
            print("begin", name, flush=True)
        faulthandler.dump_traceback_later(LIMIT_S, exit=True)
        word, reason = one(dist, own, Tests, name, store, rank, world, codes)
        store.set(f"{name}/{rank}", f"{word} {reason}")
        results = [store.get(f"{name}/{r}").decode().partition(" ") for r in range(world)]
        faulthandler.cancel_dump_traceback_later()
        words = [result[0] for result in results]
        worst = next(w for w in ("failed", "skipped", "passed") if w in words)
        if rank == 0:
            print(worst, name, next(result[2] for result in results if result[0] == worst), flush=True)
        store.add(f"{name}/read", 1)
        if worst == "failed":
            while store.add(f"{name}/read", 0) < world:
                pass
            os._exit(1)
    os._exit(0)


class Meeting:
    """The barrier that the tests use beside what they test."""

    def __init__(self, store, key, world):
        self.store, self.key, self.world, self.number = store, key, world, 0

    def __call__(self, wait_for=None, timeout=30):
        self.number += 1
        key = f"{self.key}/{self.number}"
        if self.store.add(key, 1) == (wait_for or self.world):
            self.store.set(key + "/all", "")
        self.store.wait([key + "/all"], timedelta(seconds=timeout))


def one(dist, own, kind, name, store, rank, world, codes):
    """One test on this rank: ("passed" | "skipped" | "failed", why)."""
    from torch.testing._internal.common_utils import set_rng_seed

    test = kind(name)
    test.rank, test.file_name = rank, f"{os.environ['TEMP_DIR']}/own-tests-{name}"
    try:
        dist.init_process_group("gloo", store=dist.PrefixStore(name, store), rank=rank, world_size=world)
        meet = Meeting(store, f"{name}/meet", world)
        test._barrier = own.Barrier.sync = meet
        set_rng_seed(1234)
        getattr(test, name)()
        meet()
        if dist.is_initialized():
            dist.destroy_process_group()
    except unittest.SkipTest as skip:
        word = ("skipped", str(skip))
    except SystemExit as code:
        word = ("skipped", codes[code.code]) if code.code in codes else ("failed", f"exit {code.code}")
    except BaseException as failure:
        sys.stderr.write(traceback.format_exc())
        return "failed", f"{type(failure).__name__}: {' '.join(str(failure).split())[:200]}"
    else:
        return "passed", ""
    if dist.is_initialized():
        dist.destroy_process_group()
    return word


if __name__ == "__main__":
    sys.exit(main())
