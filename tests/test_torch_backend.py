"""The backend "dtrun" of torch.distributed, by `import dtrun.torch` and by `backend.torch`, with the torch of this Python.

test_torch_2_backend.py runs the same with torch 2.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from support.job import BUILD, PATIENCE_S, SOURCE, JobTest, main, nightly, skip

PROGRAMS = SOURCE / "tests/torch_backend"
# Ends with the version of torch, where torch.distributed has gloo to compare with.
PROBE = "import torch, torch.distributed as d; d.is_gloo_available() or exit('torch has no gloo'); print(torch.__version__)"


def version_of(python):
    if python is None or not Path(python).exists():
        return None
    done = subprocess.run([python, "-c", PROBE], capture_output=True, text=True, check=False)
    return tuple(map(int, done.stdout.split(".")[:2])) if done.returncode == 0 else None


class TorchBackend(JobTest):
    def environment(self, **more):
        return super().environment(
            PYTHONPATH=f"{SOURCE}/python:{BUILD}/python", DTRUN_LIBRARY=str(BUILD / "lib/libdtrun.so.1"), **more
        )

    def hold(self, name, world, *words):
        result = self.ranks(world, PYTHON, PROGRAMS / name, *words)
        self.assert_ok(result)
        for rank in range(world):
            self.assertRegex(result.out, f"rank {rank} of {world}: [1-9][0-9]* checks hold")

    def run_text(self, text, world=2, sets=(), flags=(), **more):
        script = self.write("import torch, torch.distributed as dist\n" + text, "script.py")
        return self.ranks(world, PYTHON, script, sets=["job.grace=2s", *sets], flags=flags, **more)

    def assert_fails(self, text, *errors, **more):
        result = self.run_text(text, **more)
        self.assertEqual(result.code, 1, str(result))
        for error in errors:
            self.assertIn(error, result.err, str(result))


class Calls(TorchBackend):
    def test_calls_works_messages_groups_and_training(self):
        self.hold("all_in_one.py", 3, "collectives", "late", "callbacks", "training", "hooks", "works")

    @nightly
    def test_each_program_alone(self):
        for name in ("collectives.py", "works.py", "late.py", "callbacks.py", "hooks.py", "training.py"):
            for world in (2, 3):
                with self.subTest(name, world=world):
                    self.hold(name, world)

    @nightly
    def test_a_callback_that_never_returns_does_not_keep_the_program(self):
        text = (
            "import dtrun.torch, threading\ndist.init_process_group('dtrun')\n"
            "store, first = dist.group.WORLD.get_group_store(), dist.get_rank() == 0\n"
            "first or store.wait(['attached'])\n"
            "future = dist.all_reduce(torch.ones(2), async_op=True).get_future()\n"
            "first and (future.then(lambda _: threading.Event().wait()), store.set('attached', ''))\n"
            "dist.all_reduce(torch.ones(2), async_op=True).get_future().wait()\ndist.destroy_process_group()\n"
        )
        result = self.run_text(text)
        self.assert_ok(result)
        self.golden_lines(result.err, "callback", "10 s")

    def test_control_c_cuts_calls_short(self):
        self.hold("interrupted.py", 2)

    def test_an_exception_ends_a_rank_in_order_while_a_thread_is_in_torch(self):
        text = (
            "import dtrun.torch, threading, time\ndist.init_process_group('dtrun')\ncalled = threading.Event()\n"
            "work = dist.all_reduce(torch.ones(2), async_op=True)\n"
            "future = work.get_future().then(lambda _: (called.set(), time.sleep(0.5)))\n"  # ends after the main thread has
            "called.wait()\nraise KeyboardInterrupt\n"
        )
        result = self.run_text(text)
        self.assertEqual(result.code, 130, str(result))
        self.assertNotIn("terminate called", result.out + result.err, str(result))

    @nightly
    def test_an_exception_ends_a_rank_while_a_callback_runs(self):
        text = (
            "import atexit, dtrun.torch, threading, time\nfrom dtrun.torch import following\n"
            "following._LEAVES_WITHIN_S = 0.1\ndist.init_process_group('dtrun')\n"
            "attached, called = threading.Event(), threading.Event()\n"
            "def goes_on(_):\n    called.set()\n    while True: time.sleep(0.001)\n"
            "atexit.register(print, 'called at the end')\n"
            "dist.group.WORLD._follow.in_order(attached.wait, int)  # the future behind it does not end before\n"
            "dist.all_reduce(torch.ones(2), async_op=True).get_future().then(goes_on)\n"
            "attached.set()\ncalled.wait()\nraise "
        )
        for failure, code in ("KeyboardInterrupt", 130), ("ValueError('of the program')", 1):
            with self.subTest(failure):
                result = self.run_text(text + failure, world=1)
                self.assertEqual(result.code, code, str(result))
                self.assertIn("called at the end", result.out)

    def test_torch_compile(self):
        if VERSION < (2, 5):
            self.skipTest("torch 1.13 has no torch.compile")
        self.hold("compiled.py", 2, *(["inductor"] if shutil.which("g++") else []))

    def on_the_fake_device(self, *sets, **more):
        """devices.py on two ranks, with the library that is built for the torch of this Python."""
        library = os.environ.get("FAKE_TORCH") or BUILD / "tests/fake/libfake_torch.so"
        if "FAKE_TORCH" not in os.environ and not (Path(library).exists() and VERSION < (2, 0)):
            self.skipTest(f"{library} is built for another torch")
        environment = self.environment(FAKE_TORCH=str(library), OMP_NUM_THREADS="1", **more)
        flags = ("--plugin-dir", BUILD / "tests/fake")
        return self.ranks(2, PYTHON, PROGRAMS / "devices.py", sets=["job.grace=2s", *sets], flags=flags, env=environment)

    def test_tensors_of_a_device(self):
        for route in ("backend.name=cpu:gloo,fake:fake", "backend.name=gloo"):
            with self.subTest(route=route):
                result = self.on_the_fake_device(route)
                self.assert_ok(result)
                for rank in range(2):
                    self.assertRegex(result.out, f"rank {rank} of 2: [1-9][0-9]* checks hold")

    @nightly
    def test_a_future_of_staged_calls_that_differ_has_the_failure(self):
        result = self.on_the_fake_device("backend.name=gloo", CALLS_DIFFER="1")
        self.assert_ok(result)
        for rank in range(2):
            self.assertIn(f"rank {rank}: refused", result.out)

    @nightly
    def test_a_missing_wait_of_a_stream_shows(self):
        result = self.on_the_fake_device("backend.name=cpu:gloo,fake:fake", MISSING_WAIT="1")
        self.assertEqual(result.code, 1, str(result))
        self.assertIn("AssertionError: tensor(", result.err)

    def test_a_group_of_several_backends(self):
        if VERSION < (2, 0):
            self.skipTest("torch 1.13 has one backend for a group")
        for ask in ("cpu:gloo,cuda:dtrun", "cpu:dtrun,cuda:gloo"):
            result = self.ranks(2, PYTHON, PROGRAMS / "mixed.py", ask)
            self.assert_ok(result)
            made_by = "dtrun" if "cpu:dtrun" in ask else "torch"
            for rank in range(2):
                self.assertIn(f"rank {rank}: a work of {made_by}", result.out)

    @nightly
    def test_its_benchmark_still_runs(self):
        if VERSION < (2, 0):  # which measures a group of gloo beside
            self.skipTest("because torch 1.13 may stand still as a group of gloo ends: its thread and its destructor wait for each other")
        words = [SOURCE / "tools/bench/torch_backend.py", "--python", PYTHON, "--rounds", "2", "--calls", "20"]
        done = subprocess.run([sys.executable, *words], env=self.environment(DTRUN_BUILD=str(BUILD)), cwd=self.folder,
                              capture_output=True, text=True, check=False, timeout=PATIENCE_S)  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("weights after 2 steps equal: True", done.stdout)
        self.assertIn("| call | torch's gloo |", done.stdout)

    def test_a_script_may_end_with_works_that_are_not_kept(self):
        text = (
            "import dtrun.torch\ndist.init_process_group('dtrun')\nr = dist.get_rank()\n"
            "x, y = torch.full((200000,), float(r)), torch.zeros(200000)\n"
            "dist.isend(x, 1 - r)\ndist.recv(y, 1 - r)\nprint(r, 'got', int(y[0]), flush=True)\n"
            "dist.all_reduce(x, async_op=True)\n"
        )
        result = self.run_text(text)
        self.assert_ok(result)
        self.assertIn("0 got 1", result.out)

    @nightly
    def test_a_script_may_import_it_before_torch(self):
        script = self.write("import dtrun.torch, torch.distributed as dist\ndist.init_process_group('dtrun')\ndist.barrier()\n", "first.py")
        self.assert_ok(self.ranks(2, PYTHON, script))


class Misuse(TorchBackend):
    @nightly
    def test_a_world_that_is_not_dtruns(self):
        self.assert_fails(
            "import dtrun.torch\ndist.init_process_group('dtrun', rank=0, world_size=1, store=dist.HashStore())\n",
            "init_process_group: rank 0 of 1, ", "rank 1 of 2; ", "world_size",
        )

    def test_a_process_that_dtrun_did_not_start(self):
        script = "import dtrun.torch, torch.distributed as d\nd.init_process_group('dtrun', rank=0, world_size=2, store=d.HashStore())"
        done = subprocess.run([PYTHON, "-c", script], env=self.environment(), capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "rank 0 of 2, .*dtrun -n 2")

    @nightly
    def test_a_second_init(self):
        self.assert_fails(
            "import dtrun.torch\ndist.init_process_group('dtrun')\ndist.init_process_group('dtrun')\n",
            " twice!",
        )

    def test_arguments_that_do_not_fit(self):
        cases = {
            "dist.all_gather_into_tensor(torch.ones(3), torch.ones(2))": "all_gather_into_tensor: ",
            "dist.all_to_all_single(torch.ones(3), torch.ones(3))": "all_to_all_single: ",
            "dist.all_reduce(torch.ones(2, dtype=torch.int32), dist.ReduceOp.AVG)": "allreduce: ",
            "dist.all_reduce(torch.ones(2).to(torch.float8_e5m2))": "allreduce: torch.float8_e5m2 cannot be reduced",
            "dist.all_reduce(torch.ones(2, device='meta'))": "allreduce: the tensor is on meta; ",
            "dist.group.WORLD.reduce_scatter([torch.ones(1)], [[torch.ones(1)]]).wait()": "reduce_scatter: 1 tensors to reduce for 2 ranks",
        }  # fmt: skip
        if VERSION < (2, 1):  # has no such type
            del cases["dist.all_reduce(torch.ones(2).to(torch.float8_e5m2))"]
        text = "import dtrun.torch\ndist.init_process_group('dtrun')\n"
        for call in cases:
            text += f"try: {call}\nexcept RuntimeError as failure: print('refused:', failure, flush=True)\n"
        result = self.run_text(text + "x = torch.ones(1); dist.all_reduce(x); print('still', int(x), flush=True)\n")
        self.assert_ok(result)
        for error in cases.values():
            self.assertIn("refused: " + error, result.out)
        self.assertIn("still 2", result.out)

    @nightly
    def test_ranks_that_call_something_else(self):
        self.assert_fails(
            "import dtrun.torch\ndist.init_process_group('dtrun')\n"
            "dist.all_reduce(torch.ones(2)) if dist.get_rank() else dist.broadcast(torch.ones(2), 0)\n",
            "allreduce", "broadcast",
        )  # fmt: skip

    def test_two_threads_that_call_different_operations(self):
        """As async_save of torch.distributed.checkpoint does on the group of the training."""
        self.assert_fails(
            "import dtrun.torch, threading\ndist.init_process_group('dtrun')\nx = torch.ones(2)\n"
            "helper = threading.Thread(target=lambda: dist.broadcast(x, 0), name='saver')\n"
            "if dist.get_rank() == 0:\n"
            "    helper.start(); helper.join()\n"
            "    dist.all_reduce(x)\n"
            "else:\n"
            "    work = dist.all_reduce(x, async_op=True)\n"
            "    helper.start(); helper.join()\n"
            "    work.wait()\n",
            "differs: rank 0 calls broadcast", " MainThread and saver ",
            "group = torch.distributed.new_group(), then async_save(..., process_group=group)",
        )  # fmt: skip

    DIFFERS = (
        "try: dist.all_reduce(torch.ones(2)) if dist.get_rank() else dist.broadcast(torch.ones(2), 0)\n"
        "except dtrun.Mismatch: pass\n"
    )
    AGAIN = (
        "dist.destroy_process_group()\ndist.init_process_group('dtrun')\n"
        "for group in (None, dist.new_group([0, 1])):\n"
        "    x = torch.ones(1); dist.all_reduce(x, group=group); assert x == 2, x\n"
        "try: old.allreduce([torch.ones(1)]).wait()\n"
        "except dtrun.FailedPrecondition: pass\n"
    )

    @nightly
    def test_another_process_group_after_a_failure(self):
        """The last of them is after one that has not failed."""
        timeout = (
            "try: dist.get_rank() or dist.all_reduce(torch.ones(2))\nexcept dtrun.Timeout: pass\n"
        )
        for what, failure in (("calls that differ", self.DIFFERS), ("a rank that did not come", timeout)):
            with self.subTest(what=what):
                result = self.run_text(
                    "import dtrun.torch\nfrom datetime import timedelta\n"
                    "dist.init_process_group('dtrun', timeout=timedelta(seconds=15))\nold = dist.group.WORLD\n"
                    f"{failure}{self.AGAIN * 2}print('rank', dist.get_rank(), 'is done', flush=True)\n"
                )
                self.assert_ok(result)
                for rank in range(2):
                    self.assertIn(f"rank {rank} is done", result.out)

    @nightly
    def test_new_group_on_one_rank_only(self):
        self.assert_fails(
            "import dtrun.torch, time\ndist.init_process_group('dtrun')\n"
            "if dist.get_rank() == 0: dist.new_group([0, 1])\ntime.sleep(60)\n",
            "new_group: ", "rank 1 did not call", "all ranks call new_group, in one order",
            sets=["backend.timeout=15s"],
        )  # fmt: skip

    @nightly
    def test_new_group_after_a_failure(self):
        self.assert_fails(
            f"import dtrun.torch\ndist.init_process_group('dtrun')\n{self.DIFFERS}dist.new_group([0, 1])\n",
            "new_group: ", ": call 1 on 'world' differs", "destroy_process_group()", "init_process_group()", "restart.max",
        )

    @nightly
    def test_another_process_group_where_the_program_uses_dtrun_too(self):
        self.assert_fails(
            f"import dtrun.torch\ndtrun.init()\ndist.init_process_group('dtrun')\n{self.DIFFERS}"
            "dist.destroy_process_group()\ndist.init_process_group('dtrun')\n",
            "init_process_group: ", "use dtrun too",
        )

    def test_ddp_reports_a_rank_that_died(self):
        self.assert_fails(
            "import dtrun.torch, os, signal\ndist.init_process_group('dtrun')\n"
            "model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))\n"
            "if dist.get_rank() == 1: os._exit(1)\n"
            "model(torch.ones(1, 2)).sum().backward()\n",
            "rank 1 exited with code 1",
        )

    @nightly
    def test_a_group_waits_as_long_as_the_script_says(self):
        self.assert_fails(
            "import dtrun.torch, time\nfrom datetime import timedelta\n"
            "dist.init_process_group('dtrun', timeout=timedelta(seconds=15))\n"  # torch's store has no more to come up
            "if dist.get_rank() == 0: dist.all_reduce(torch.ones(2))\n"
            "dist.recv(torch.ones(1), 0) if dist.get_rank() else None\n",
            "dtrun.errors.Timeout",
        )


class InPlaceOfGloo(TorchBackend):
    SAYS = (
        "print(dist.get_rank(), dist.get_backend(), type(dist.group.WORLD).__module__, flush=True)\n"
        "x = torch.ones(2); dist.all_reduce(x); dist.monitored_barrier(); assert x[0] == 2\ndist.destroy_process_group()\n"
    )

    def setUp(self):
        super().setUp()
        if VERSION < (2, 5):
            self.skipTest(f"torch {'.'.join(map(str, VERSION))} loads no backends by itself; 2.5 does")

    def test_scripts_that_ask_for_gloo_or_nothing(self):
        for ask in ("'gloo'", "", "'cpu:gloo'"):
            for more in ({"sets": ["backend.torch=dtrun"]}, {"flags": ["--torch-backend", "dtrun"]}):
                with self.subTest(ask=ask, more=more):
                    result = self.run_text(f"dist.init_process_group({ask})\n" + self.SAYS, **more)
                    self.assert_ok(result)
                    for rank in range(2):
                        self.assertIn(f"{rank} dtrun dtrun.torch.group", result.out)
                    self.assertRegex(result.err, "backend .*gloo.*torch.distributed")

    def test_a_mesh_that_makes_the_process_group(self):
        text = "from torch.distributed.device_mesh import init_device_mesh\ninit_device_mesh('cpu', (2,))\n"
        result = self.run_text(text + self.SAYS, sets=["backend.torch=dtrun"])
        self.assert_ok(result)
        self.assertIn("1 dtrun dtrun.torch.group", result.out)

    def test_without_the_option_gloo_is_gloo(self):
        result = self.run_text("dist.init_process_group('gloo')\n" + self.SAYS)
        self.assert_ok(result)
        self.assertIn("1 gloo torch.distributed.distributed_c10d", result.out)
        self.assertNotIn("also for torch.distributed", result.err)

    def under_torchrun(self, text, **variables):
        script = self.write("import torch, torch.distributed as dist\n" + text, "script.py")
        return self.dtrun("torchrun", "--nproc-per-node", "2", script, env=self.environment(PYTHON_EXEC=PYTHON, **variables))

    def test_under_torchruns_command_line(self):
        result = self.under_torchrun("dist.init_process_group('gloo')\n" + self.SAYS, DTRUN_CONFIG_BACKEND_TORCH="dtrun")
        self.assert_ok(result)
        for rank in range(2):
            self.assertIn(f"{rank} dtrun dtrun.torch.group", result.out)

    def test_torchruns_command_line_without_a_backend(self):
        text = "import dtrun.torch\ndist.init_process_group('dtrun')\ndist.barrier()\ndist.destroy_process_group()\n"
        result = self.under_torchrun(text)
        self.assertEqual(result.code, 1, str(result))
        self.assertIn('backend.name is "none"', result.err)
        self.assertIn("DTRUN_CONFIG_BACKEND_NAME=gloo", result.err)
        self.assert_ok(self.under_torchrun(text, DTRUN_CONFIG_BACKEND_NAME="gloo"))

    def test_another_name_is_refused(self):
        result = self.ranks(1, "true", flags=["--torch-backend", "nccl"])
        self.assert_user_error(result, "--torch-backend=nccl: backend.torch: ")


def run(places, least, fix):
    """The tests with the first Python of `places` with torch `least` or later; skipped, with `fix`, if there is none."""
    global PYTHON, VERSION
    versions = {python: version_of(python) for python in places}
    PYTHON = next((python for python, version in versions.items() if version and version >= least), None)
    if PYTHON is None:
        skip(f"none of {', '.join(str(place) for place in places if place)} has torch {least[0]} with gloo; {fix}")
    VERSION = versions[PYTHON]
    main()


if __name__ == "__main__":
    run([sys.executable], (1, 13), "install python3-torch")
