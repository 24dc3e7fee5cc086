"""A whole job over nccl, through dtrun.h: the plugins nccl and cuda over fake libraries, with a device in the process's memory.

One rank, as the fake NCCL joins threads of one process only; plugins/nccl/testing/core_test.cc has several."""

from support.job import BUILD, main
from test_p2p import FAKES, Faked

PROGRAM = BUILD / "tests" / "stream_program"


class WholeJob(Faked):
    def run_program(self, *sets, **environment):
        environment = {"DTRUN_FAKE_DEVICES": "1", "DTRUN_FAKE_MEMORY": "known", "LD_LIBRARY_PATH": str(FAKES),
                       "XDG_CACHE_HOME": str(self.cache), **environment}
        return self.ranks(1, PROGRAM, env=self.environment(**environment),
                          sets=["backend.name=cpu:gloo,cuda:nccl", "backend.gloo.interface=lo", *sets])

    def test_a_program_uses_device_memory(self):
        for delays in ("1:0", "7:500"):
            with self.subTest(delays):
                result = self.run_program(DTRUN_FAKE_DELAYS=delays)
                self.assert_ok(result)
                self.golden_lines(result.out, "cuda memory by nccl")
                self.assertIn("sum 1\n", result.out)
                self.golden_lines(result.out, "refused: allreduce: ")
                self.assertIn("cuda memory: nccl (NCCL 2.28.9", result.err)

    def test_an_option_of_its_configuration_reaches_it_or_is_refused(self):
        self.assert_ok(self.run_program("backend.nccl.cta_policy=zero", "backend.nccl.max_ctas=4"))
        result = self.run_program("backend.nccl.graph_usage=one")
        self.golden_error(result, "graph_usage", "2.29.0", "2.28.9")

    def test_describe_prints_what_a_communicator_can_be_configured_with(self):
        result = self.dtrun("plugins", "describe", "nccl", env=self.environment(LD_LIBRARY_PATH=str(FAKES)))
        self.assert_ok(result)
        for option in ("net_name", "cga_cluster_size", "min_ctas", "max_ctas", "cta_policy", "nvls_ctas", "collnet", "traffic_class",
                       "channels_per_net_peer", "nvlink_centric_sched", "max_p2p_peers", "graph_usage"):
            self.assertIn(option, result.out)


if __name__ == "__main__":
    main()
