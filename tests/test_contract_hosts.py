"""Ranks of different hosts that do not make the same calls: named, though no agent sees both."""

from support.cluster import ClusterTest, open_lab
from support.job import BUILD, RANK, main
from test_contract import DIFFERENCES

LAYERS = {"shm+gloo": "", "gloo": '[comm]\nlocal = "none"\n'}
PATIENT = '[backend]\ntimeout = "60s"\n'


def setUpModule():
    open_lab()


# One rank per host, where nothing else is said: the one that differs has no like on its host.
class Hosts(ClusterTest):
    def test_calls_that_differ_are_named(self):
        for layer, more in LAYERS.items():
            for what, (ours, theirs) in DIFFERENCES.items():
                with self.subTest(layer=layer, what=what):
                    result = self.run_cluster(RANK, "differ", what, "slowly", ranks=1, more=more + PATIENT)
                    self.assertEqual(result.code, 3, str(result))
                    self.assertEqual(result.err.count("dtrun: call 10 on 'world' differs: rank "), 1, str(result))
                    # The rank that failed first says so as well, not that another one aborted.
                    self.assertRegex(result.err, r"    \| rank failed: call 10 on 'world' .*: rank [01] calls ")
                    self.assertIn(ours, result.err)
                    self.assertIn(f"rank 2 calls {theirs}", result.err)

    # In its own first call on a device a rank waits for the others, which wait for it.
    def test_calls_on_other_memory_are_named(self):
        plugins = f'[plugins]\npath = ["{BUILD / "tests/fake"}"]\n'
        called = r"allreduce \(float32 x 8, sum, fake memory\)"
        for what, number, theirs in (("memory", 10, called), ("memory-connected", 11, called),
                                     ("connect", 10, r"connect \(fake memory\)")):
            for layer, more in LAYERS.items():
                with self.subTest(layer=layer, what=what):
                    result = self.run_cluster(RANK, "differ", what, "slowly", ranks=1, more=more + PATIENT + plugins)
                    self.assertEqual(result.code, 3, str(result))
                    self.assertEqual(result.err.count(f"dtrun: call {number} on 'world' differs: rank "), 1, str(result))
                    self.assertRegex(result.err, rf"    \| rank failed: call {number} on 'world' .*: rank [01] calls allreduce "
                                                 rf"\(float32 x 8, sum\), rank 2 calls {theirs}")

    def test_a_message_in_other_memory_on_each_side_is_named(self):
        plugins = f'[plugins]\npath = ["{BUILD / "tests/fake"}"]\n'
        for layer, more in LAYERS.items():
            with self.subTest(layer=layer):
                result = self.run_cluster(RANK, "mixed", "host", ranks=1, more=more + PATIENT + plugins)
                text = "message 1 with tag 7 from rank 0 to rank 2 on 'world' differs: "
                self.assertEqual(result.code, 3, str(result))
                self.assertEqual(result.err.count(f"dtrun: {text}"), 1, str(result))
                self.assertIn(f"    | rank failed: {text}", result.err)

    def test_a_message_of_another_type_is_named(self):
        result = self.run_cluster(RANK, "mismatch", "dtype", "slowly", ranks=1, more='[backend]\nname = "ucx"\ntimeout = "60s"\n')
        self.assertEqual(result.code, 3, str(result))
        self.assertIn("rank 0 sends float32 x 8, rank 2 receives int32 x 8", result.err)

    def test_a_rank_that_leaves_early_is_named(self):
        for backend in ("ucx", "mpi"):
            if not (BUILD / f"lib/dtrun/plugins/libdtrun_backend_{backend}.so").exists():
                continue
            with self.subTest(backend=backend):
                result = self.run_cluster(RANK, "leave", ranks=1, more=f'[backend]\nname = "{backend}"\ntimeout = "60s"\n')
                self.assertRegex(result.err, r"rank failed: .*rank 2 has left 'world'")
                self.assertEqual(self.last_verdict()["blamed"]["ranks"], [2])
                # It must not wait in MPI_Finalize for those that wait for it.
                result = self.run_cluster(RANK, "exit", ranks=1, more=f'[backend]\nname = "{backend}"\ntimeout = "60s"\n')
                self.assertEqual(result.code, 5, str(result))

    def test_a_rank_may_leave_when_it_has_done_its_part(self):
        for backend in ("gloo", "ucx", "mpi"):
            if not (BUILD / f"lib/dtrun/plugins/libdtrun_backend_{backend}.so").exists():
                continue
            with self.subTest(backend=backend):
                self.assert_ok(self.run_cluster(RANK, "late", ranks=1, more=f'[backend]\nname = "{backend}"\n' + '[comm]\nlocal = "none"\n'))

    def test_calls_that_differ_are_found_at_full_speed(self):
        for layer, more in LAYERS.items():
            with self.subTest(layer=layer):
                result = self.run_cluster(RANK, "differ", "reduce", ranks=1, more=more + PATIENT)
                self.assertEqual(result.code, 3, str(result))
                # Which call it was is forgotten after 128 more.
                self.assertRegex(result.err, r"dtrun: (call 10 on 'world' differs|the calls 1 to \d+ on 'world' differ)")

    def test_a_rank_elsewhere_that_skips_a_call_is_named_with_where_it_is(self):
        for layer, more in LAYERS.items():
            with self.subTest(layer=layer):
                result = self.run_cluster(RANK, "skip", ranks=1, more=more + '[backend]\ntimeout = "3s"\n')
                self.assertEqual(result.code, 3, str(result))
                self.assertIn("allreduce #10", result.err)
                self.assertRegex(result.err, "rank 2 .*#9")

    def test_a_difference_inside_one_host_is_known_on_all(self):
        result = self.run_cluster(RANK, "differ", "reduce", "slowly", more=PATIENT)
        self.assertEqual(result.code, 3, str(result))
        self.assertIn("rank 5 calls allreduce (float32 x 8, max)", result.err)


if __name__ == "__main__":
    main()
