"""Devices that a rank cannot use, through dtrun.h: what it is told, and what the others are.

The device plugin cuda runs over a CUDA runtime that is made for tests, and staging carries its memory."""

import os
import subprocess

from support.job import BUILD, RANK, JobTest, main
from test_p2p import FAKES, Faked

PROGRAM = BUILD / "tests" / "stream_program"
ACCELERATOR = BUILD / "tests" / "fake"
SLICES = "MIG-1111,MIG-2222"
# MODE0 MODE1 UNSHARE...: the program, in a /dev where files of GPUs have the mode of its rank.
ENTER_DEVICES = f"""
test "$DTRUN_RANK" = 0 && mode=$0 || mode=$1
shift; export mode dev="$TMPDIR/dev$DTRUN_RANK"; mkdir -p "$dev"
exec "$@" sh -e -c '
  mount -t tmpfs dev "$dev"
  for file in null zero random urandom; do touch "$dev/$file"; mount --bind "/dev/$file" "$dev/$file"; done
  mkdir "$dev/shm"; mount --bind /dev/shm "$dev/shm"
  for file in nvidiactl nvidia0; do touch "$dev/$file"; chmod "$mode" "$dev/$file"; done
  mount --rbind "$dev" /dev
  exec setpriv --bounding-set=-dac_override,-dac_read_search "{PROGRAM}"'
"""


class Unusable(Faked):
    def run_program(self, *arguments, ranks=2, command=PROGRAM, sets=(), **environment):
        environment = {"CUDA_VISIBLE_DEVICES": SLICES, "DTRUN_FAKE_DEVICES": "2", "DTRUN_FAKE_MEMORY": "known",
                       "LD_LIBRARY_PATH": str(FAKES), **environment}
        return self.ranks(ranks, command, *arguments, sets=["backend.name=gloo", "backend.timeout=60s", *sets],
                          env=self.environment(**environment))

    def assert_refused(self, result, *texts):
        self.assertEqual(result.code, 1, str(result))
        for text in texts:
            self.assertIn(text, result.err)

    def test_a_slice_of_a_gpu_is_a_device_like_others(self):
        result = self.run_program("1")
        self.assert_ok(result)
        self.golden_lines(result.out, "cuda memory by staging")
        self.assertIn("sum 2\n", result.out)

    def test_an_index_that_is_not_there(self):
        self.assert_refused(self.run_program("2"), "dtrun_comm_connect: ", "cuda 2: ", f"(CUDA_VISIBLE_DEVICES={SLICES})")

    def test_no_device(self):
        self.assert_refused(self.run_program(DTRUN_FAKE_DEVICES="0"), "device 'cuda', ", "nvidia-smi", "CUDA_VISIBLE_DEVICES")

    # Where dtrun sees no GPU either, the device plugin says why.
    def test_no_gpu_on_the_host(self):
        nothing = {"CUDA_VISIBLE_DEVICES": "", "DTRUN_FAKE_DEVICES": "0"}
        for arguments, call in ((), "dtrun_comm_connect"), (("route",), "dtrun_comm_route"):
            result = self.run_program(*arguments, **nothing)
            self.assert_refused(result, f"{call}: device 'cuda'", "nvidia-smi")
            self.assertNotIn("no device plugin", result.err)
            self.assert_refused(self.run_program(*arguments, sets=["backend.staging=off"], **nothing),
                                f"{call}: ", 'backend.staging is "off"', '"auto"')

    # The ranks see a /dev of their own, as root that has to obey modes.
    def test_no_permission_on_the_device(self):
        enter = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
        if subprocess.run([*enter, "sh", "-c", 'mount -t tmpfs dev "$0"', self.folder], capture_output=True).returncode != 0:
            self.skipTest("needs the right to mount")
        told = "device 'cuda', "
        run = lambda modes: self.run_program("-c", ENTER_DEVICES, *modes, *enter, command="sh", DTRUN_FAKE_FILES="checked")
        result = run(["0666", "0666"])
        self.assert_ok(result)
        self.assertIn("sum 2\n", result.out)
        self.assert_refused(run(["0", "0"]), f"dtrun_comm_connect: {told}", "'/dev/nvidia0': Permission denied; ")
        result = run(["0666", "0"])
        self.assert_refused(result, told)  # of rank 1; rank 0 hears the same, if dtrun has not ended it before
        self.assertIn("rank 1", result.err[result.err.rindex("dtrun: job"):].splitlines()[0])

    def test_a_driver_older_than_the_runtime(self):
        self.assert_refused(self.run_program(DTRUN_FAKE_DRIVER="12020"), "CUDA 12.2", f"'{FAKES}/libcudart.so.13' is CUDA 13.0")

    def test_on_one_rank_only_the_others_hear_of_it_at_once(self):
        # Rank 1 stays until dtrun ends it: its own end would stop the others, perhaps before they have heard.
        script = 'test "$DTRUN_RANK" = 1 || exec "$0"; DTRUN_FAKE_DEVICES=0 "$0"; exec tail -f /dev/null'
        result = self.run_program("-c", script, PROGRAM, command="sh", ranks=3)
        self.assert_refused(result, "rank 1 ", "'world'", "device 'cuda', ")

    def test_little_pinned_memory_is_enough(self):
        for left in (1 << 20, 256 << 10):
            with self.subTest(left):
                result = self.run_program(DTRUN_FAKE_HOST_BYTES=str(left))
                self.assert_ok(result)
                self.assertIn("sum 2\n", result.out)

    def test_without_pinned_memory_ordinary_memory_serves(self):
        result = self.run_program(DTRUN_FAKE_HOST_BYTES="4096")
        self.assert_ok(result)
        self.assertIn("sum 2\n", result.out)

    # A call that waits for the device while it holds the driver's lock, and streams that share a queue: what the device
    # still needs from the host then never comes. The fake CUDA ends the process after 20 s of it.
    def test_a_driver_that_locks_and_has_few_queues(self):
        for queues in "1", "2", "0":
            for part in "streams", "operations":
                with self.subTest(queues=queues, part=part):
                    result = self.run_program(part, command=BUILD / "tests" / "device_program", DTRUN_FAKE_LOCKS="1",
                                              DTRUN_FAKE_QUEUES=queues, DTRUN_FAKE_DELAYS="1:200")
                    self.assert_ok(result)

    def test_memory_of_the_device_that_is_used_up(self):
        self.assert_refused(self.run_program(DTRUN_FAKE_DEVICE_BYTES="64"), "memory: alloc_on of 4000 bytes on cuda 0: ", "'out of memory'", "nvidia-smi")

    def test_buffers_of_host_and_device_in_one_call(self):
        result = self.run_program()
        self.assert_ok(result)
        self.golden_lines(result.out, "refused: allreduce: ", "cuda 0")


# Which memory a call moves is part of what all ranks agree on.
class OtherMemory(JobTest):
    def run_rank(self, *words, sets=()):
        return self.ranks(3, RANK, *words, flags=("--plugin-dir", ACCELERATOR), sets=["backend.timeout=60s", *sets])

    def differ(self, how, number=10, call=r"allreduce \(float32 x 8, sum, fake memory\)"):
        result = self.run_rank("differ", how, "slowly")
        self.assertEqual(result.code, 3, str(result))
        self.assertRegex(result.err, rf"rank [01] calls allreduce \(float32 x 8, sum\), rank 2 calls {call}")
        self.assertEqual(result.err.count(f"] rank failed: call {number} on 'world' differs: rank "), 3, str(result))

    def test_after_all_have_connected(self):
        self.differ("memory-connected", number=11)

    def test_in_the_call_that_would_connect(self):
        self.differ("memory")

    def test_ranks_that_connect_and_ranks_that_call(self):
        self.differ("connect", call=r"connect \(fake memory\)")

    # They take different ways, and neither would end.
    def test_both_sides_of_a_message(self):
        for backend in "auto", "gloo":
            for sends, receives in ("host", "fake"), ("fake", "host"):
                with self.subTest(backend=backend, sends=sends):
                    result = self.run_rank("mixed", "host" if sends == "host" else "device", sets=[f"backend.name={backend}"])
                    self.assertEqual(result.code, 3, str(result))
                    self.golden_lines(result.err, "dtrun: job ", f"{sends}, rank 2 ", receives)
                    for rank in range(3):
                        self.assertRegex(result.err, rf"\[{rank}\] rank failed: message 1 with tag 7 from rank 0 to rank 2 on 'world' ")


if __name__ == "__main__":
    main()
