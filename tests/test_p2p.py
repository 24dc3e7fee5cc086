"""Peer access between GPUs, over CUDA and NCCL libraries of our own that play machines with faults."""

import shutil

from support.job import JobTest, BUILD, main

FAKES = BUILD / "tests" / "nccl-fake"
UNSUPPORTED = "CUDA error: peer access is not supported between these two devices"
SHOW = ["sh", "-c", 'echo "p2p=$DTRUN_P2P nccl=$NCCL_P2P_DISABLE"']


class PeerAccess(JobTest):
    def setUp(self):
        super().setUp()
        if not (FAKES / "libcudart.so.13").exists():
            self.skipTest("the nccl plugin's tests are not built")
        self.cache = self.folder / "cache"

    def run_with(self, peers, *sets, command=SHOW, **environment):
        environment = self.environment(DTRUN_FAKE_DEVICES="2", DTRUN_FAKE_PEERS=peers, XDG_CACHE_HOME=str(self.cache),
                                       **environment)
        return self.ranks(2, *command, env=environment,
                          sets=["backend.name=nccl", f"backend.options.library={FAKES}/libnccl.so.2",
                                f"backend.options.cuda_library={FAKES}/libcudart.so.13", *sets])

    def line(self, result):
        return next(line for line in result.err.splitlines() if line.split()[:1] == ["p2p"])

    def assert_ranks_see(self, result, text):
        self.assert_ok(result)
        self.assertEqual(sorted(result.out.splitlines()), [f"[0] {text}", f"[1] {text}"])

    def test_works(self):
        result = self.run_with("")
        self.assert_ranks_see(result, "p2p=on nccl=")
        self.assertRegex(result.err, r"local +nccl alone")
        self.assertRegex(self.line(result), r"on: 2 of 2 directions proven, the slowest at .* GB/s$")
        self.assertIn("found earlier", self.line(self.run_with("")))

    def test_error_217_is_healed_before_the_ranks_start(self):
        result = self.run_with("0>1=unsupported")
        self.assert_ranks_see(result, "p2p=off nccl=1")
        self.assertRegex(self.line(result), r"off: GPU 1 \(0000:02:00.0\) cannot read GPU 0 \(0000:01:00.0\): .*"
                                            r"peer access is not supported between these two devices")

    def test_copies_that_corrupt_hang_or_crash_are_healed(self):
        for fault, words in (("corrupt", "the copy arrives corrupt"), ("hang", "the copy did not end within 5 s"),
                             ("crash", "the copy was killed: Aborted"), ("slow", "through the host")):
            with self.subTest(fault=fault):
                shutil.rmtree(self.cache, ignore_errors=True)
                result = self.run_with(f"1>0={fault}")
                self.assert_ranks_see(result, "p2p=off nccl=1")
                self.assertIn(words, self.line(result))

    def test_on_where_it_cannot_be_ends_the_job_before_it_starts(self):
        result = self.run_with("0>1=refused", "backend.options.p2p=on")
        self.assertEqual(result.code, 2, result.err)
        self.assertIn('backend.options.p2p is "on", but GPU 1 (0000:02:00.0) cannot read GPU 0 (0000:01:00.0): '
                      "the driver says that it cannot, though the other way it can", result.err)

    def test_the_users_own_variable_wins(self):
        result = self.run_with("0>1=hang", NCCL_P2P_DISABLE="1")
        self.assert_ranks_see(result, "p2p=off nccl=1")
        self.assertIn("as NCCL_P2P_DISABLE=1 of your environment says", self.line(result))

    def test_a_failure_that_the_trial_missed_takes_one_way_less(self):
        fails_unless = lambda variable, text: f'test "${variable}" = 1 || {{ echo "{text}" >&2; exit 1; }}; '
        script = fails_unless("NCCL_P2P_DISABLE", UNSUPPORTED) + fails_unless(
            "NCCL_SHM_DISABLE", "NCCL WARN Error: failed to extend /dev/shm/nccl-7 to 9637892 bytes") + 'echo "fine"'
        result = self.run_with("", command=["sh", "-c", script])
        self.assert_ranks_see(result, "fine")
        self.assertRegex(result.err, r"dtrun: rank \d: CUDA error 217.*; starting again without peer access between GPUs")
        self.assertRegex(result.err, r"dtrun: rank \d: /dev/shm has no room .*; starting again over the network alone")

    def test_a_way_that_the_user_chose_is_not_left(self):
        result = self.run_with("", "backend.options.p2p=on", command=["sh", "-c", f'echo "{UNSUPPORTED}" >&2; exit 3'])
        self.assertEqual(result.code, 3)
        self.assertNotIn("starting again", result.err)


if __name__ == "__main__":
    main()
