"""Ranks that do not make the same calls: named, in time, whatever carries them."""

import shutil
import time
import unittest

from support.job import BUILD, RANK, JobTest, main

LAYERS = {"shm": ["comm.local=shm"], "gloo": ["comm.local=none"]}
SEEDS = (range(6), range(2))  # random programs; of mpi, which starts slowly
BACKENDS = {name: [f"backend.name={name}", "comm.local=none"] for name in ("ucx", "mpi")}
# What the last of three ranks calls, and what the others call, in its tenth call.
DIFFERENCES = {
    "reduce": ("allreduce (float32 x 8, sum)", "allreduce (float32 x 8, max)"),
    "kind": ("allreduce (float32 x 8, sum)", "broadcast (float32 x 8, root 0)"),
    "count": ("allreduce (float32 x 8, sum)", "allreduce (float32 x 9, sum)"),
    "dtype": ("allreduce (float32 x 8, sum)", "allreduce (float64 x 8, sum)"),
    "root": ("broadcast (float32 x 8, root 0)", "broadcast (float32 x 8, root 1)"),
    "order": ("allreduce (float32 x 8, sum)", "barrier"),
}


class Contract(JobTest):
    def test_calls_that_differ_are_named(self):
        for layer, sets in LAYERS.items():
            for what, (ours, theirs) in DIFFERENCES.items():
                with self.subTest(layer=layer, what=what):
                    start = time.monotonic()
                    result = self.ranks(3, RANK, "differ", what, sets=[*sets, "backend.timeout=60s"])
                    self.assertLess(time.monotonic() - start, 30)
                    self.assertEqual(result.code, 3, str(result))
                    self.assertRegex(result.err, r"call 10 on 'world' differs: rank [01] calls ")
                    self.assertRegex(result.err, r"job '\w+' .* match: rank [01] calls ")
                    self.golden_lines(result.err, "  next: ")
                    self.assertEqual(self.last_verdict()["exit_class"], "user-error")
                    self.assertIn(ours, result.err)
                    self.assertIn(f"rank 2 calls {theirs}", result.err)

    @unittest.skipUnless((BUILD / "lib/dtrun/plugins/libdtrun_backend_ucx.so").exists(), "the ucx plugin is not built")
    def test_a_backend_that_meets_the_wrong_bytes_first_does_not_hide_the_calls(self):
        for what in ("count", "dtype", "order"):  # as to the others, it moves the same bytes
            ours, theirs = DIFFERENCES[what]
            with self.subTest(what=what):
                result = self.ranks(3, RANK, "differ", what, sets=[*BACKENDS["ucx"], "backend.timeout=60s"])
                self.assertEqual(result.code, 3, str(result))
                self.assertRegex(result.err, r"job '\w+' .* match: rank [01] calls ")
                self.assertIn(ours, result.err)
                self.assertIn(f"rank 2 calls {theirs}", result.err)

    def test_ranks_that_leave_after_the_call_do_not_hide_it(self):
        for name, sets in {**LAYERS, **BACKENDS}.items():
            if name in BACKENDS and not (BUILD / f"lib/dtrun/plugins/libdtrun_backend_{name}.so").exists():
                continue
            for what in ("root", "roots"):
                with self.subTest(layer=name, what=what):
                    result = self.ranks(2, RANK, "differ", what, "leave", sets=[*sets, "backend.timeout=60s"])
                    self.assertNotEqual(result.code, 0, str(result))
                    self.assertRegex(result.err, r"job '\w+' .* match: rank 0 calls broadcast .* root 0\), rank 1 calls")
                    self.assertEqual(self.last_verdict()["exit_class"], "user-error")

    def test_an_exception_that_leaves_a_group_is_named_and_not_kept_waiting(self):
        for name, sets in {**LAYERS, **BACKENDS}.items():
            if name in BACKENDS and not (BUILD / f"lib/dtrun/plugins/libdtrun_backend_{name}.so").exists():
                continue
            with self.subTest(layer=name):
                start = time.monotonic()
                result = self.ranks(3, RANK, "leave-group", sets=[*sets, "backend.timeout=600s"])
                self.assertLess(time.monotonic() - start, 60)
                self.assertEqual(result.code, 3, str(result))
                self.assertRegex(result.err, r"job '\w+' .* rank 1 .*\b(bad batch|exited with code 3)")
                self.assertIn("rank failed: bad batch", result.err)

    def test_messages_that_differ_are_named(self):
        for name, sets in {**LAYERS, **BACKENDS}.items():
            if name in BACKENDS and not (BUILD / f"lib/dtrun/plugins/libdtrun_backend_{name}.so").exists():
                continue
            for what, theirs in (("dtype", "int32 x 8"), ("count", "float32 x 4")):
                with self.subTest(layer=name, what=what):
                    result = self.ranks(2, RANK, "mismatch", what, sets=[*sets, "backend.timeout=60s"])
                    self.assertNotEqual(result.code, 0, str(result))  # it may be told by finalize
                    self.assertRegex(result.err, r"job '\w+' .* match: rank 0 sends float32 x 8, rank 1 receives " + theirs)
                    self.assertEqual(self.last_verdict()["exit_class"], "user-error")
            with self.subTest(layer=name, what="leave"):  # the program has wrong values, and ends
                result = self.ranks(2, RANK, "mismatch", "dtype", "leave", sets=[*sets, "backend.timeout=60s"])
                self.assertNotEqual(result.code, 0, str(result))
                self.assertIn("rank 0 sends float32 x 8, rank 1 receives int32 x 8", result.err)
            with self.subTest(layer=name, what="tag"):
                result = self.ranks(2, RANK, "mismatch", "tag", sets=[*sets, "backend.timeout=1s", "job.grace=1s"])
                self.assertEqual(result.code, 3, str(result))
                self.assertIn("rank 0 has sent tag 7", result.err)

    def test_right_messages_are_not_accused(self):
        layers = {**LAYERS, **BACKENDS, "two hosts": ["comm.emulate_hosts=2"]}
        for name, sets in layers.items():
            if name in BACKENDS and not (BUILD / f"lib/dtrun/plugins/libdtrun_backend_{name}.so").exists():
                continue
            for seed in SEEDS[name == "mpi"]:
                with self.subTest(layer=name, seed=seed):
                    result = self.ranks(2 + seed % 3, BUILD / "tests/right_messages", str(seed), sets=[*sets, "backend.timeout=60s"])
                    self.assert_ok(result)
                    self.assertEqual(result.out.count("right"), 2 + seed % 3, str(result))

    def test_a_rank_that_joins_again_may_call_what_it_likes(self):
        for name, sets in LAYERS.items():
            with self.subTest(layer=name):
                self.assert_ok(self.ranks(2, RANK, "again", sets=sets))

    def test_a_rank_that_skips_a_call_is_named_with_where_it_is(self):
        for layer, sets in LAYERS.items():
            with self.subTest(layer=layer):
                result = self.ranks(3, RANK, "skip", sets=[*sets, "backend.timeout=1s", "job.grace=1s"])
                self.assertEqual(result.code, 3, str(result))
                self.assertIn("allreduce #10", result.err)
                self.assertRegex(result.err, "rank 2 .*#9")

    @unittest.skipUnless(shutil.which("gdb") or shutil.which("eu-stack"), "neither eu-stack nor gdb is here")
    def test_a_rank_that_stands_still_is_a_hang_over_every_backend(self):
        for name, sets in {**LAYERS, **BACKENDS}.items():
            backend = sets[0].removeprefix("backend.name=")
            if name in BACKENDS and not (BUILD / f"lib/dtrun/plugins/libdtrun_backend_{backend}.so").exists():
                continue
            with self.subTest(layer=name):
                result = self.ranks(2, RANK, "skip", sets=[*sets, "backend.timeout=2s", "job.grace=1s"])
                self.assertRegex(result.err, r"failed after \S+ s: rank 1 was in \S*pause", str(result))
                self.golden_lines(result.err, "  next: ")
                self.assertIn("  class: hang\n", result.err)
                verdict = result.err[result.err.index("failed after") :]
                self.assertEqual(verdict.count(" after #9"), 1, str(result))

    def test_what_the_ranks_called_last_is_kept(self):
        self.ranks(3, RANK, "differ", "reduce")
        calls = next(self.folder.glob("**/calls.txt")).read_text()
        self.assertIn("#10 allreduce (float32 x 8, max)", calls.replace(" *", ""))


if __name__ == "__main__":
    main()
