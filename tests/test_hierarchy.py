"""Ranks on several hosts, which ranks of this one pretend to live on: shared memory inside each, a
backend between them."""

import signal

from support.job import BUILD, RANK, JobTest, main

BUILT = [name for name in ("gloo", "ucx", "mpi") if (BUILD / f"lib/dtrun/plugins/libdtrun_backend_{name}.so").exists()]
WIRES = [name for name in BUILT if name != "mpi"]  # MPI's own behaviour after a failure is test_mpi_start's
HOSTS = ["comm.emulate_hosts=2"]


class Hierarchy(JobTest):
    def test_ranks_meet_and_sum_over_every_wire(self):
        for wire in WIRES:
            for world in (2, 3, 4, 7):
                with self.subTest(wire=wire, world=world):
                    result = self.ranks(world, RANK, sets=[*HOSTS, f"backend.name={wire}"], flags=["-v"])
                    self.assert_ok(result)
                    expected = world * (world + 1) // 2
                    for rank in range(world):
                        self.assertIn(f"rank {rank} of {world} over shm+{wire}: sum {expected}\n", result.out)
                    self.assertRegex(result.err, rf"shared memory .*{wire} ")

    def test_without_shared_memory_the_backend_is_alone(self):
        result = self.ranks(3, RANK, sets=[*HOSTS, "comm.local=none"])
        self.assert_ok(result)
        self.assertIn("rank 2 of 3 over gloo: sum 6\n", result.out)

    def test_more_than_32_ranks_talk_where_the_wire_connects_them_as_they_do(self):
        for wire in BUILT:
            with self.subTest(wire=wire):
                result = self.ranks(33, RANK, "ring", sets=[*HOSTS, f"backend.name={wire}"])
                if wire == "gloo":
                    self.assertEqual(result.code, 3, str(result))
                    self.assertRegex(result.err, "at most 32; .*subset")
                    continue
                self.assert_ok(result)
                for rank in range(33):
                    self.assertIn(f"rank {rank} of 33 over shm+{wire}: got {(rank + 32) % 33}\n", result.out)

    def test_a_rank_that_dies_ends_the_job_whichever_it_is(self):
        for wire in WIRES:
            for rank in (0, 1, 2):  # a leader, one that it leads, the leader of the other host
                with self.subTest(wire=wire, rank=rank):
                    death = ["die", "in-allreduce", str(rank), str(int(signal.SIGKILL))]
                    result = self.ranks(
                        4, RANK, *death, sets=[*HOSTS, f"backend.name={wire}", "job.grace=3s"])
                    self.assertEqual(result.code, 137, str(result))
                    verdict = result.err[result.err.rindex("dtrun: job"):].splitlines()[0]
                    self.assertIn(f"rank {rank}", verdict)
                    self.assertIn("SIGKILL", verdict)

    def test_calls_that_differ_are_named_as_the_program_made_them(self):
        # The last rank is one that is led (of 4), or the leader of a host of its own (of 3).
        for world in (3, 4):
            for what, theirs in {"reduce": "allreduce (float32 x 8, max)", "kind": "broadcast"}.items():
                with self.subTest(world=world, what=what):
                    result = self.ranks(world, RANK, "differ", what, sets=HOSTS)
                    self.assertEqual(result.code, 3, str(result))
                    self.assertRegex(result.err, r"call 10 on 'world' differs: rank [012] calls allreduce")
                    self.assertIn(f"rank {world - 1} calls {theirs}", result.err)

    def test_a_rank_that_skips_a_call_is_named(self):
        for world in (3, 4):
            with self.subTest(world=world):
                result = self.ranks(
                    world, RANK, "skip", sets=[*HOSTS, "backend.timeout=1s", "job.grace=1s"])
                self.assertEqual(result.code, 3, str(result))
                self.assertIn("allreduce #10", result.err)
                self.assertRegex(result.err, f"rank {world - 1} .*#9")


if __name__ == "__main__":
    main()
