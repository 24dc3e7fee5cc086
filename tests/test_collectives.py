"""Ranks that use libdtrun, over a real backend."""

from support.job import RANK, JobTest, main


class Collectives(JobTest):
    def test_ranks_meet_and_sum(self):
        for world in (1, 2, 4):
            result = self.ranks(world, RANK)
            self.assert_ok(result)
            expected = world * (world + 1) // 2
            for rank in range(world):
                self.assertIn(f"rank {rank} of {world} over shm: sum {expected}\n", result.out)

    def test_a_program_that_dtrun_did_not_start_is_a_world_of_one(self):
        import subprocess

        out = subprocess.run([RANK], env=self.environment(), capture_output=True, text=True, timeout=60)
        self.assertEqual(out.stdout, "rank 0 of 1 over self: sum 1\n", out.stderr)

    def test_a_rank_that_never_comes_is_named(self):
        command = f'[ $RANK = 1 ] && exec sleep 1000; exec {RANK}'
        result = self.ranks(3, "sh", "-c", command, sets=["backend.timeout=2s", "job.grace=1s"])
        self.assertEqual(result.code, 3, str(result))
        self.assertIn("1", result.err)
        self.assertIn("rank failed:", result.err)

    def test_without_a_backend_init_says_so(self):
        result = self.ranks(2, RANK, sets=["backend.name=none"])
        self.assertEqual(result.code, 3, str(result))
        self.assertIn("backend.name", result.err)

    def test_an_interface_that_does_not_exist_lists_what_does(self):
        result = self.ranks(2, RANK, sets=["backend.options.interface=lp"])
        self.assert_user_error(result, "'lp'", "lo")

    def test_the_interface_can_be_a_name_or_an_address(self):
        for interface in ("lo", "127.0.0.1"):
            result = self.ranks(2, RANK, sets=[f"backend.options.interface={interface}", "comm.local=none"], flags=["-v"])
            self.assert_ok(result)
            self.assertIn("127.0.0.1", result.err)


if __name__ == "__main__":
    main()
