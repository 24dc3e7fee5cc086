"""Peer access between GPUs, over CUDA and NCCL libraries of our own that play machines with faults."""

import json
import re
import shutil
import unittest

from support.cluster import ClusterTest, open_lab
from support.job import JobTest, BUILD, main
from support.lab import why_not

FAKES = BUILD / "tests" / "nccl-fake"
UNSUPPORTED = "CUDA error: peer access is not supported between these two devices"
SHOW = ["sh", "-c", 'echo "p2p=$DTRUN_P2P nccl=$NCCL_P2P_DISABLE"']


class Faked(JobTest):
    def setUp(self):
        super().setUp()
        if not (FAKES / "libcudart.so.13").exists():
            self.skipTest("the nccl plugin's tests are not built")
        self.cache = self.folder / "cache"

    def run_with(self, peers, *sets, command=SHOW, **environment):
        environment = self.environment(**{"DTRUN_FAKE_DEVICES": "2", "DTRUN_FAKE_PEERS": peers,
                                          "XDG_CACHE_HOME": str(self.cache), **environment})
        return self.ranks(2, *command, env=environment, flags=["-v"],
                          sets=["backend.name=nccl", f"backend.options.library={FAKES}/libnccl.so.2",
                                f"backend.options.cuda_library={FAKES}/libcudart.so.13", *sets])

    def line(self, result):
        return next(line for line in result.err.splitlines() if line.split()[:1] == ["p2p"])

    def assert_ranks_see(self, result, text):
        self.assert_ok(result)
        self.assertEqual(sorted(result.out.splitlines()), [f"[0] {text}", f"[1] {text}"])


class PeerAccess(Faked):
    def test_works(self):
        result = self.run_with("")
        self.assert_ranks_see(result, "p2p=on nccl=")
        self.golden_lines(result.err, "cuda memory")
        self.golden_lines(self.line(result), "on: 2 of 2")
        self.assertIn("found earlier", self.line(self.run_with("")))

    def test_error_217_is_healed_before_the_ranks_start(self):
        result = self.run_with("0>1=unsupported")
        self.assert_ranks_see(result, "p2p=off nccl=1")
        self.golden(self.line(result), "GPU 1 (0000:02:00.0)", "GPU 0 (0000:01:00.0)")

    def test_copies_that_corrupt_hang_or_crash_are_healed(self):
        for fault, words in (("corrupt", "the copy arrives corrupt"), ("hang", "the copy did not end within 2 s"),
                             ("crash", "the copy was killed: Aborted"), ("slow", "through the host")):
            with self.subTest(fault=fault):
                shutil.rmtree(self.cache, ignore_errors=True)
                result = self.run_with(f"1>0={fault}")
                self.assert_ranks_see(result, "p2p=off nccl=1")
                self.assertIn(words, self.line(result))

    def test_on_where_it_cannot_be_ends_the_job_before_it_starts(self):
        result = self.run_with("0>1=refused", "backend.options.p2p=on")
        self.assertEqual(result.code, 2, result.err)
        self.golden_lines(result.err, 'backend.options.p2p is "on", but GPU 1 (0000:02:00.0)', "GPU 0 (0000:01:00.0)")

    def test_the_users_own_variable_wins(self):
        result = self.run_with("0>1=hang", NCCL_P2P_DISABLE="1")
        self.assert_ranks_see(result, "p2p=off nccl=1")
        self.golden_lines(self.line(result), "as NCCL_P2P_DISABLE=1")

    def test_a_failure_that_the_trial_missed_takes_one_way_less(self):
        fails_unless = lambda variable, text: f'test "${variable}" = 1 || {{ echo "{text}" >&2; exit 1; }}; '
        script = fails_unless("NCCL_P2P_DISABLE", UNSUPPORTED) + fails_unless(
            "NCCL_SHM_DISABLE", "NCCL WARN Error: failed to extend /dev/shm/nccl-7 to 9637892 bytes") + 'echo "fine"'
        result = self.run_with("", command=["sh", "-c", script])
        self.assert_ranks_see(result, "fine")
        self.assertRegex(result.err, r"dtrun: rank \d: CUDA error 217")
        self.assertRegex(result.err, r"dtrun: rank \d: /dev/shm ")

    def test_a_way_that_the_user_chose_is_not_left(self):
        result = self.run_with("", "backend.options.p2p=on", command=["sh", "-c", f'echo "{UNSUPPORTED}" >&2; exit 3'])
        self.assertEqual(result.code, 3)
        self.assertNotIn("restarting all ranks", result.err)


class Explained(Faked):
    """`dtrun explain` on the job: each pair of GPUs with its verdict and reason."""

    def story(self, peers, *sets, devices=2, **environment):
        result = self.run_with(peers, *sets, DTRUN_FAKE_DEVICES=str(devices), **environment)
        self.assert_ok(result)
        story = json.loads(self.dtrun("explain", "latest", "--json").out)
        return self.dtrun("explain", "latest").out, story["gpu_peers"], result

    def test_pairs_that_all_agree_are_one_line(self):
        text, hosts, _ = self.story("")
        self.golden_lines(text, "gpu peers ", "2 GPUs")
        self.assertEqual([(pair["from"], pair["to"], pair["verdict"]) for pair in hosts[0]["pairs"]],
                         [(0, 1, "proven"), (1, 0, "proven")])
        self.assertEqual((hosts[0]["devices"], hosts[0]["ranks"]), (["0000:01:00.0", "0000:02:00.0"], [0, 1]))

    def test_each_pair_that_cannot_has_its_reason(self):
        text, hosts, result = self.story("0>1=corrupt,1>2=refused,2>1=refused", devices=3)
        self.golden(re.search(r"GPU 0 is 0000:01:00.0; GPU 1 is 0000:02:00.0; GPU 2 is 0000:03:00.0\n( {13}.*\n)+", text)[0],
                    "             reads    GPU 0     GPU 1     GPU 2\n"
                    "             GPU 0    .         proven    proven\n"
                    "             GPU 1    broken    .         refused\n"
                    "             GPU 2    proven    refused   .\n",
                    "GPU 1 of GPU 0: broken, ", "GPU 2 of GPU 1, GPU 1 of GPU 2: refused, ")
        self.assertIn("ranks see DTRUN_P2P=off, NCCL_P2P_DISABLE=1", text)
        self.assertNotIn("peer 0>1", result.err)  # the header has one line

    def test_doctor_shows_the_pairs(self):
        environment = self.environment(DTRUN_FAKE_DEVICES="2", DTRUN_FAKE_PEERS="0>1=corrupt", XDG_CACHE_HOME=str(self.cache))
        config = self.write(f'[job]\ncommand = ["true"]\nprocesses_per_host = 2\n[backend]\nname = "nccl"\n[backend.options]\n'
                            f'library = "{FAKES}/libnccl.so.2"\ncuda_library = "{FAKES}/libcudart.so.13"\n')
        result = self.dtrun("doctor", "--config", config, env=environment)
        self.golden_lines(result.out, "GPU 1 of GPU 0: ")

    def test_a_trial_that_hung_left_the_others_untried(self):
        text, hosts, _ = self.story("0>1=hang")
        self.golden_lines(text, "GPU 1 of GPU 0: ", "2 s")
        self.assertEqual(hosts[0]["pairs"][1]["verdict"], "not tried")

    def test_what_nvml_denies_is_said(self):
        text, _, _ = self.story("", LD_LIBRARY_PATH=str(FAKES), DTRUN_FAKE_NVML_P2P="4")
        self.golden_lines(text, ": refused, ", "NVML")

    def test_where_the_user_has_decided_nothing_was_tried(self):
        text, hosts, _ = self.story("0>1=hang", "backend.options.p2p=off")
        self.assertEqual(hosts, [])
        self.assertIn("p2p        off, as backend.options.p2p says", text)

    def test_a_way_that_was_given_up_is_told(self):
        script = f'test "$NCCL_P2P_DISABLE" = 1 || {{ echo "{UNSUPPORTED}" >&2; exit 1; }}'
        self.assert_ok(self.run_with("", command=["sh", "-c", script]))
        text = self.dtrun("explain", "latest").out
        self.assertRegex(text, r"warning +rank \d: CUDA error 217: .*\(NCCL_P2P_DISABLE=1\)")
        self.assertIn("ranks see DTRUN_P2P=off, NCCL_P2P_DISABLE=1", text)


class AnyBackend(JobTest):
    """The second net is there for programs that use NCCL or UCX themselves, whatever carries dtrun's own."""

    def run_failing(self, variable, text, backend):
        script = f'test -n "${variable}" || {{ echo "{text}" >&2; exit 1; }}; echo "${variable}"'
        return self.ranks(2, "sh", "-c", script, sets=[f"backend.name={backend}"])

    def test_error_217_of_an_unmodified_program(self):
        for backend in ("none", "gloo"):
            result = self.run_failing("NCCL_P2P_DISABLE", UNSUPPORTED, backend)
            self.assert_ok(result)
            self.assertEqual(sorted(result.out.splitlines()), ["[0] 1", "[1] 1"])
            self.assertIn("(NCCL_P2P_DISABLE=1)", result.err)

    def test_cuda_ipc_of_ucx(self):
        result = self.run_failing("UCX_TLS", "cuda_ipc_cache.c:114  UCX  ERROR cuIpcOpenMemHandle() failed: invalid device context", "none")
        self.assert_ok(result)
        self.assertEqual(sorted(result.out.splitlines()), ["[0] ^cuda_ipc", "[1] ^cuda_ipc"])


class ThreeHosts(ClusterTest):
    """Peers are tried on every host, and what one must do without is given up by all."""

    @classmethod
    def setUpClass(cls):
        if why_not() or not (FAKES / "libcudart.so.13").exists():
            raise unittest.SkipTest(why_not() or "the nccl plugin's tests are not built")
        open_lab()

    def test_one_host_with_broken_peers(self):
        config = self.config(SHOW, more=f'[backend]\nname = "nccl"\n[backend.options]\nlibrary = "{FAKES}/libnccl.so.2"\n'
                                        f'cuda_library = "{FAKES}/libcudart.so.13"\n')
        environment = self.environment(DTRUN_FAKE_DEVICES="2", DTRUN_FAKE_PEERS="node1/0>1=corrupt",
                                       XDG_CACHE_HOME="/proc/none")  # one boot id for all three here
        result = self.start_on(0, "--config", config, env=environment).finish()
        self.assert_ok(result)
        self.assertEqual(set(line.split(maxsplit=1)[1] for line in result.out.splitlines()), {"p2p=off nccl=1"})
        self.golden_lines(result.err, "node1: off: ", "GPU 1 (0000:02:00.0)")
        self.golden_lines(result.err, "NCCL_P2P_DISABLE=1", "node1")
        text = self.dtrun("explain", "latest").out
        self.golden_lines(text, "node0, node2: ", "2 GPUs")
        self.assertIn("node1: GPU 0 is 0000:01:00.0, rank 2; GPU 1 is 0000:02:00.0, rank 3", text)
        self.golden_lines(text, "GPUs of different hosts")

    def test_on_is_refused_with_host_and_pair(self):
        config = self.config(SHOW, more=f'[backend]\nname = "nccl"\n[backend.options]\nlibrary = "{FAKES}/libnccl.so.2"\n'
                                        f'cuda_library = "{FAKES}/libcudart.so.13"\np2p = "on"\n')
        environment = self.environment(DTRUN_FAKE_DEVICES="2", DTRUN_FAKE_PEERS="node2/1>0=refused",
                                       XDG_CACHE_HOME="/proc/none")
        result = self.start_on(0, "--config", config, env=environment).finish()
        self.golden_error(result, "node2", 'backend.options.p2p is "on", but GPU 0')


if __name__ == "__main__":
    main()
