"""A list in backend.name: the first backend that every host can use, agreed before anything starts."""

import json
import socket
import subprocess
import tempfile
import unittest
from pathlib import Path

from support.job import DTRUN, RANK, Job, JobTest, end, main
from support.lab import Lab, why_not

NO_NCCL = "/lib/x86_64-linux-gnu/libm.so.6"  # a library, and another one
WITHOUT_NCCL = {"CUDA_VISIBLE_DEVICES": ""}


class OneHost(JobTest):
    def test_the_first_that_can_be_used_is_taken_and_the_header_says_why(self):
        config = self.write(f'[job]\ncommand = ["{RANK}"]\nprocesses_per_host = 2\n'
                            '[backend]\nname = ["nccl", "gloo"]\n[backend.gloo]\ninterface = "lo"\n')
        job = self.start("-v", "--config", config, env=self.environment(**WITHOUT_NCCL))
        result = job.finish()
        self.assert_ok(result)
        self.assertIn("backend    gloo", result.err)
        self.assertIn("chosen     because nccl ", result.err)
        self.assertIn("interface  lo 127.0.0.1", result.err)
        plan = json.loads((job.run_dir() / "plan.json").read_text())
        self.assertEqual(plan["backend"]["name"], "gloo")
        told = self.dtrun("explain", "latest").out
        self.assertRegex(told, r"because: backend.name = .*; nccl ")
        self.assertNotIn("because: because", told)

    def test_when_the_first_can_be_used_nothing_is_passed_over(self):
        result = self.ranks(1, "true", sets=["backend.name=gloo,ucx"], flags=["-v"])
        self.assert_ok(result)
        self.golden_lines(result.err, "chosen")

    def test_auto_finds_one(self):
        result = self.ranks(2, RANK, sets=["backend.name=auto"], env=self.environment(**WITHOUT_NCCL))
        self.assert_ok(result)
        self.assertIn("chosen     because nccl ", result.err)

    def test_mpi_without_its_library_or_without_a_server_is_passed_over(self):
        for sets, why in ((["backend.mpi.library=/lib/x86_64-linux-gnu/libm.so.6"], "libm.so.6"),
                          (["backend.mpi.library=/nowhere/libmpi.so"], "/nowhere/libmpi.so"),
                          (["job.pmi=none", "comm.local=none"], 'job.pmi is "none"')):
            with self.subTest(why):
                result = self.ranks(2, RANK, sets=["backend.name=mpi,gloo", *sets])
                self.assert_ok(result)
                self.assertIn("backend    gloo", result.err)
                self.golden_lines(result.err, "chosen")
                self.assertIn(why, result.err)

    def test_a_single_name_never_falls_back(self):
        result = self.ranks(1, "true", sets=["backend.name=gloo", "backend.options.interface=nosuch0"])
        self.assert_user_error(result, "nosuch0")

    def test_none_that_can_be_used_is_an_error_with_every_reason(self):
        config = self.write('[job]\ncommand = ["true"]\n[backend]\nname = ["nosuch", "gloo"]\n'
                            '[backend.gloo]\ninterface = "nosuch0"\n')
        self.golden_error(self.dtrun("--config", config), "job.toml:4:8: backend.name", "nosuch0")

    def test_a_misspelt_name_in_a_list_is_refused_as_one_alone_is(self):
        for names in ("ncll,gloo", "gloo,glo", "Gloo,ucx"):
            with self.subTest(names):
                result = self.ranks(1, "true", sets=[f"backend.name={names}"])
                self.golden_error(result, f"--set backend.name={names}: ")
        config = self.write('[job]\ncommand = ["true"]\n[backend]\nname = ["nccl", "glo", "gloo"]\n')
        for verb in (["config", "check"], ["doctor", "--config"]):
            self.golden_error(self.dtrun(*verb, config), "job.toml:4:8", "'glo'", "'gloo'?")

    def test_a_name_that_no_plugin_has_is_passed_over_with_a_warning_everywhere(self):
        sets = ["--set", "backend.name=acme,gloo"]
        result = self.ranks(1, "true", sets=[sets[1]])
        self.assert_ok(result)
        self.golden_lines(result.err, "warning    --set backend.name: ", "'acme'")
        self.golden_lines(self.dtrun("plan", *sets, "true").out, "warning: --set backend.name: ", "'acme'")
        config = self.write('[job]\ncommand = ["true"]\n[backend]\nname = ["gloo", "acme"]\n')
        checked = self.dtrun("config", "check", config)
        self.golden_lines(checked.err, "job.toml:4:8: backend.name: ", "'acme'")
        self.assertIn("ok", checked.out)
        self.golden_lines(self.dtrun("doctor", "--config", config).out, "warning", "'acme'")
        for others in ("nccl,ucx,gloo", "auto"):
            self.assertNotIn("there is no backend", self.ranks(1, "true", sets=[f"backend.name={others}"]).err.split("routes")[0])

    def test_options_belong_to_one_backend(self):
        config = self.write('[job]\ncommand = ["true"]\n[backend]\nname = ["ucx", "gloo"]\n'
                            '[backend.options]\ninterface = "lo"\n')
        self.golden_error(self.dtrun("--config", config), "backend.options", "[backend.ucx]")

    def test_tables_of_backends_that_the_job_does_not_use_are_checked_too(self):
        text = '[job]\ncommand = ["true"]\n[backend]\nname = "gloo"\n[backend.ucx]\ndevices = "lo"\n[backend.gloo]\ninterface = "lo"\n'
        self.assert_ok(self.dtrun("--config", self.write(text)))
        wrong = self.write(text.replace("backend.ucx", "backend.uxc"), "wrong.toml")
        self.assert_user_error(self.dtrun("--config", wrong), "unknown table 'backend.uxc'")
        unknown = self.write(text.replace("interface", "interfce").replace("devices", "devces"), "unknown.toml")
        self.golden_error(self.dtrun("--config", unknown), "'backend.ucx.devces'", "'backend.gloo.interfce'", "'interface'")

    def test_every_backend_that_may_serve_has_its_options_checked(self):
        text = ('[job]\ncommand = ["true"]\n[backend]\nname = "cpu:gloo,cuda:nccl"\n'
                '[backend.nccl]\np2p = "onn"\n[backend.gloo]\ninterfce = "lo"\n')
        result = self.dtrun("config", "check", self.write(text))
        self.assert_user_error(result, "job.toml:6:7: backend.options.p2p", "job.toml:8:1: unknown option 'backend.gloo.interfce'")
        beside = '[job]\ncommand = ["true"]\n[backend]\nname = "nccl"\n[backend.ucx]\nwibble = 1\n'
        result = self.dtrun("config", "check", self.write(beside))
        self.assert_user_error(result, "job.toml:6:1: unknown option 'backend.ucx.wibble'")

    def test_an_override_may_name_the_backend(self):
        sets = ["backend.name=gloo", "backend.ucx.devices=lo", "backend.gloo.interface=lo", "comm.local=none"]
        result = self.ranks(1, "true", sets=sets, flags=["-v"])
        self.assert_ok(result)
        self.assertIn("interface  lo 127.0.0.1", result.err)


class ThisMachineByName(JobTest):
    """One host, named in the list: it is asked what a job without a list asks."""

    def start_on(self, host, *words, sets=(), env=WITHOUT_NCCL):
        return self.dtrun("-v", "-H", host, *(word for one in sets for word in ("--set", one)), *words, env=self.environment(**env))

    def test_a_list_falls_back(self):
        for host in ("localhost:2", f"{socket.gethostname()}:2", "127.0.0.1:2"):
            for name in ("nccl,gloo", "auto"):
                with self.subTest(host=host, name=name):
                    result = self.start_on(host, RANK, sets=[f"backend.name={name}", f"backend.nccl.library={NO_NCCL}"])
                    self.assert_ok(result)
                    self.assertIn(": 2 ranks on 1 host", result.err)
                    self.golden_lines(result.err, "chosen")
                    self.assertRegex(result.err, r"\n  backend    (gloo|ucx)\b")

    def test_a_backend_that_cannot_be_used_ends_it_before_it_starts(self):
        result = self.start_on("localhost:2", "true", sets=["backend.name=nccl", f"backend.nccl.library={NO_NCCL}"])
        self.assert_user_error(result, "backend.options.library", "libm.so.6")
        result = self.start_on("localhost:2", "true", sets=["backend.name=gloo", "backend.options.interface=nosuch0"])
        self.assert_user_error(result, "--set backend.options.interface: ", "nosuch0")

    def test_gpus_are_not_taken_for_granted(self):
        none = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""}
        result = self.start_on("localhost", "--processes-per-host", "gpu", "true", env=none)
        self.assert_user_error(result, "--processes-per-host", "no GPU ")
        result = self.start_on("localhost:2", "true", sets=["job.gpu_visibility=own"], env=none)
        self.assert_user_error(result, "job.gpu_visibility")

    def test_a_variable_that_names_no_interface_is_warned_of(self):
        result = self.start_on("localhost:2", "python3", "-c", "", env={"NCCL_SOCKET_IFNAME": "ib7"})
        self.assert_ok(result)
        self.assertIn("warning    on localhost NCCL_SOCKET_IFNAME=ib7", result.err)

    def test_a_rule_for_it_has_the_name_that_was_given(self):
        result = self.start_on("localhost:2", "true", sets=["network.interface_on.localhost=nosuch0"])
        self.assert_user_error(result, "nosuch0")


@unittest.skipIf(why_not(), f"no laboratory of hosts: {why_not()}")
class ThreeHosts(JobTest):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory(prefix="dtrun-lab-")
        self.addCleanup(folder.cleanup)
        self.lab = Lab(folder.name)
        self.addCleanup(self.lab.close)

    def run_on_node0(self, backend, command=f'["{RANK}"]', job=""):
        config = self.write(
            f'[job]\ncommand = {command}\n{job}[cluster]\nhosts = {json.dumps(self.lab.names)}\n'
            f"remote_shell = {json.dumps(self.lab.shell())}\n{backend}")
        process = subprocess.Popen([*self.lab.enter(0, self.folder), str(DTRUN), "-v", "--config", str(config)],
                                   cwd=self.folder, env=self.environment(), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
        self.addCleanup(end, process)
        return Job(process, self.folder).finish()

    def test_one_host_that_cannot_decides_for_all(self):
        for i in (0, 1):
            self.lab.ip(self.lab.holders[i], "link", "add", "extra0", "type", "veth", "peer", "name", "peer0")
            self.lab.ip(self.lab.holders[i], "address", "add", f"10.78.0.{i + 1}/24", "dev", "extra0")
            for name in ("extra0", "peer0"):
                self.lab.ip(self.lab.holders[i], "link", "set", name, "up")
        result = self.run_on_node0('[backend]\nname = ["gloo", "ucx"]\n[backend.gloo]\ninterface = "extra0"\n')
        self.assert_ok(result)
        self.assertIn("backend    ucx", result.err)
        self.golden_lines(result.err, "chosen", "node2")

    def test_an_address_fits_one_host_and_a_network_fits_all(self):
        result = self.run_on_node0('[backend]\nname = "gloo"\noptions.interface = "10.77.0.1"\n')
        self.golden_error(result, "node1", "on node2: ", "'10.77.0.1'", "lo 127.0.0.1, eth0 10.77.0.2", "interface_on")
        result = self.run_on_node0('[backend]\nname = "gloo"\noptions.interface = "10.77.0.0/24"\n')
        self.assert_ok(result)
        self.assertIn("interface  node0: eth0 10.77.0.1; node1: eth0 10.77.0.2; node2: eth0 10.77.0.3", result.err)

    def hide(self, host, library):
        """Makes a library unreadable on one host."""
        for file in Path("/usr/lib/x86_64-linux-gnu").glob(library):
            subprocess.run([*self.lab.enter(host), "mount", "--bind", "/dev/null", str(file.resolve())], check=True)

    @unittest.skipUnless(list(Path("/usr/lib/x86_64-linux-gnu").glob("libpmix.so.2")), "there is no libpmix")
    def test_a_host_without_libpmix_is_found_before_any_rank_starts(self):
        self.hide(2, "libpmix.so.2")
        result = self.run_on_node0('[backend]\nname = "mpi"\n')
        self.golden_error(result, "node2", "libpmix2")
        self.assertNotIn("rank 0", result.err)
        result = self.run_on_node0('[backend]\nname = ["mpi", "gloo"]\n')
        self.assert_ok(result)
        self.assertIn("backend    gloo", result.err)
        self.golden_lines(result.err, "chosen", "node2")
        forced = self.run_on_node0('[backend]\nname = "none"\n', '["true"]', 'pmi = "pmix"\n')
        self.golden_error(forced, "on node2", "libpmix2")

    @unittest.skipUnless(list(Path("/usr/lib/x86_64-linux-gnu").glob("libmpi.so.40")), "there is no Open MPI")
    def test_a_host_without_the_library_of_a_backend_is_named(self):
        self.hide(1, "libmpi.so.40")
        result = self.run_on_node0('[backend]\nname = "mpi"\n')
        self.golden_error(result, "node1", "libmpi.so.40", "libopenmpi3")

    def test_none_for_all_ends_the_job_before_it_starts(self):
        result = self.run_on_node0('[backend]\nname = ["gloo", "nosuch"]\n[backend.gloo]\ninterface = "extra1"\n')
        self.golden_error(result, "extra1")


if __name__ == "__main__":
    main()
