"""Devices that a rank cannot use, through dtrun.h: what it is told, and what the others are.

The device plugin cuda runs over a CUDA runtime that is made for tests, and staging carries its memory."""

from support.job import BUILD, RANK, JobTest, main
from test_p2p import FAKES, Faked

PROGRAM = BUILD / "tests" / "stream_program"
ACCELERATOR = BUILD / "tests" / "fake"
SLICES = "MIG-1111,MIG-2222"


class Unusable(Faked):
    def run_program(self, *arguments, ranks=2, command=PROGRAM, **environment):
        environment = {"CUDA_VISIBLE_DEVICES": SLICES, "DTRUN_FAKE_DEVICES": "2", "DTRUN_FAKE_MEMORY": "known",
                       "LD_LIBRARY_PATH": str(FAKES), **environment}
        return self.ranks(ranks, command, *arguments, sets=["backend.name=gloo", "backend.timeout=60s"],
                          env=self.environment(**environment))

    def assert_refused(self, result, *texts):
        self.assertEqual(result.code, 1, str(result))
        for text in texts:
            self.assertIn(text, result.err)

    def test_a_slice_of_a_gpu_is_a_device_like_others(self):
        result = self.run_program("1")
        self.assert_ok(result)
        self.assertIn("host memory by shm, cuda memory by staging over shm", result.out)
        self.assertIn("sum 2\n", result.out)

    def test_an_index_that_is_not_there(self):
        self.assert_refused(self.run_program("2"), "dtrun_comm_connect: there is no cuda 2: this process has 2 of them, from 0 "
                                                   f"(CUDA_VISIBLE_DEVICES={SLICES}); use the index of one of these")

    def test_no_device(self):
        self.assert_refused(self.run_program(DTRUN_FAKE_DEVICES="0"), "device 'cuda', counting its devices: this process has no CUDA "
                            "device", "check the driver with nvidia-smi and CUDA_VISIBLE_DEVICES")

    def test_a_driver_older_than_the_runtime(self):
        self.assert_refused(self.run_program(DTRUN_FAKE_DRIVER="12020"), "the driver is for CUDA 12.2",
                            f"'{FAKES}/libcudart.so.13' is CUDA 13.0; check the driver")

    def test_on_one_rank_only_the_others_hear_of_it_at_once(self):
        script = 'test "$DTRUN_RANK" = 1 && export DTRUN_FAKE_DEVICES=0; exec "$0"'
        result = self.run_program("-c", script, PROGRAM, command="sh", ranks=3)
        self.assert_refused(result, "rank 1 cannot connect 'world' to cuda: device 'cuda', counting its devices: this process has no CUDA "
                                    "device")

    def test_little_pinned_memory_is_enough(self):
        for left in (1 << 20, 256 << 10):
            with self.subTest(left):
                result = self.run_program(DTRUN_FAKE_HOST_BYTES=str(left))
                self.assert_ok(result)
                self.assertIn("sum 2\n", result.out)

    def test_no_pinned_memory_is_refused_by_name(self):
        self.assert_refused(self.run_program(DTRUN_FAKE_HOST_BYTES="4096"), "'world' has no pinned memory of the host for its counters")

    def test_memory_of_the_device_that_is_used_up(self):
        self.assert_refused(self.run_program(DTRUN_FAKE_DEVICE_BYTES="64"), "memory: dtrun_alloc_on of 4000 bytes on cuda 0: cuda cannot "
                            "allocate 4000 bytes of device 0: 'out of memory'; nvidia-smi tells who uses its memory")

    def test_buffers_of_host_and_device_in_one_call(self):
        result = self.run_program()
        self.assert_ok(result)
        self.assertRegex(result.out, r"refused: allreduce: the recv buffer at 0x\w+ is host memory, and the stream is of cuda 0; copy it")


# Which memory a call moves is part of what all ranks agree on.
class OtherMemory(JobTest):
    def differ(self, how):
        result = self.ranks(3, RANK, "differ", how, "slowly", flags=("--plugin-dir", ACCELERATOR), sets=["backend.timeout=60s"])
        self.assertEqual(result.code, 3, str(result))
        self.assertRegex(result.err, r"failed after .*: the ranks' calls do not match: rank [01] calls allreduce \(float32 x 8, sum\), "
                                     r"rank 2 calls allreduce \(float32 x 8, sum, fake memory\)")
        self.assertEqual(result.err.count("] rank failed: call 10 on 'world' differs: rank "), 3, str(result))

    def test_after_all_have_connected(self):
        self.differ("memory-connected")

    def test_in_the_call_that_would_connect(self):
        self.differ("memory")


if __name__ == "__main__":
    main()
