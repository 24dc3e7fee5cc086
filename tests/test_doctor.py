"""`dtrun doctor`: every host looked at before a job, each finding with its fix."""

import json
import re
import secrets
import socket
import subprocess
import tempfile
import time
import unittest

from support.job import DTRUN, Job, JobTest, end, main
from support.lab import Lab, find, why_not
from support.site import Site


class Here(JobTest):
    def report(self, *arguments, code=0):
        result = self.dtrun("doctor", "--json", *arguments)
        self.assertEqual(result.code, code, str(result))
        return json.loads(result.out)

    def checks(self, report):
        return [check for host in report["hosts"] for check in host["checks"]] + report["between"]

    def test_without_a_config_looks_at_this_host(self):
        result = self.dtrun("doctor")
        self.assertIn(result.code, (0, 1), str(result))
        for topic in ("names", "network", "processors", "blas", "gpus", "rdma", "limits", "/dev/shm",
                      "backend gloo", "backend nccl"):
            self.assertIn(topic, result.out)
        self.assertRegex(result.out, r"\d+ problems?, \d+ warnings?\n$")

    def test_a_timeout_that_is_none_is_refused_without_hosts_too(self):
        for text in ("nan", "-1s", "banana", "0s"):
            self.golden_error(self.dtrun("doctor", "--timeout", text), f"--timeout '{text}'")
        self.golden_error(self.dtrun("doctor", "--timeout", ""), "--timeout DURATION")

    def test_every_warning_and_problem_has_a_cure(self):
        result = self.dtrun("doctor", "--json")
        for check in self.checks(json.loads(result.out)):
            self.assertEqual(bool(check["fix"]), check["level"] in ("warning", "problem"), check)

    def test_a_port_in_use_is_a_problem(self):
        with socket.socket(socket.AF_INET) as taken:
            taken.bind(("", 0))
            taken.listen()
            port = taken.getsockname()[1]
            report = self.report("--set", f"job.master_port={port}", code=1)
        found = [check for check in self.checks(report) if check["topic"] == "ports"]
        self.assertEqual([check["level"] for check in found], ["problem"], found)
        self.assertIn(f"port {port}", found[0]["what"])
        self.assertEqual(report["worst"], "problem")

    def test_a_backend_that_the_job_wants_and_cannot_have_is_a_problem(self):
        config = self.write('[job]\ncommand = ["true"]\n[backend]\nname = "gloo"\noptions.interface = "nosuch0"\n')
        report = self.report("--config", config, code=1)
        found = {check["topic"]: check for check in self.checks(report)}
        self.assertEqual(found["backend gloo"]["level"], "problem")
        self.assertIn("nosuch0", found["backend gloo"]["what"])
        self.assertEqual(found["backend nccl"]["level"], "not here")  # not requested

    def test_a_program_is_looked_for_as_a_job_would(self):
        self.write("print(1)\n", "train.py")
        for name in "nosuch.py", "tran.py":
            self.golden_error(self.dtrun(name), f"'{name}'")
            found = [check for check in self.checks(self.report(name, code=1)) if check["topic"] == "program"]
            self.assertEqual([check["level"] for check in found], ["problem"], found)
            self.golden(found[0]["what"] + "; " + found[0]["fix"], f"'{name}'")

    def test_a_variable_that_names_no_interface_is_a_warning(self):
        wrong = ("--set", "job.env.GLOO_SOCKET_IFNAME=nosuch0", "--set", "job.env.NCCL_SOCKET_IFNAME=lo")

        def found(*command):
            result = self.dtrun("doctor", "--json", *wrong, *command)
            return [check for check in self.checks(json.loads(result.out)) if "SOCKET_IFNAME" in check["what"]]

        for command in ((), ("--", "python3", "train.py")):
            check, = found(*command)
            self.assertEqual(check["level"], "warning")
            self.assertRegex(check["what"], "GLOO_SOCKET_IFNAME=nosuch0, .* Gloo .* lo ")
            self.golden(check["fix"], "GLOO_SOCKET_IFNAME", "job.env")
        self.assertEqual(found("--", "true"), [])  # it is linked with neither

    def test_explain_names_a_variable_that_names_no_interface(self):
        job = self.dtrun("--set", "job.env.GLOO_SOCKET_IFNAME=nosuch0", "--", "sh", "-c", "true")
        self.assert_ok(job)
        out = self.dtrun("explain", "latest").out
        self.assertRegex(out, "warning .*GLOO_SOCKET_IFNAME=nosuch0, .* Gloo ")
        self.assert_ok(self.dtrun("--set", "job.env.GLOO_SOCKET_IFNAME=nosuch0", "--", "true"))
        self.assertNotIn("means no interface", self.dtrun("explain", "latest").out)

    def test_a_config_that_cannot_be_read_is_a_user_error(self):
        self.assert_user_error(self.dtrun("doctor", "--config", self.write("[jb]\n")), "unknown table 'jb'")


@unittest.skipIf(why_not(), f"no laboratory of hosts: {why_not()}")
class ThreeHosts(JobTest):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory(prefix="dtrun-lab-")
        self.addCleanup(folder.cleanup)
        self.lab = Lab(folder.name)
        self.addCleanup(self.lab.close)

    def doctor(self, hosts=None, more="", timeout="20s", shell=None):
        job = more if more.startswith("[job]") else '[job]\ncommand = ["true"]\n'
        config = self.write(
            f'{job}[cluster]\nhosts = {json.dumps(hosts or self.lab.names)}\n'
            f"remote_shell = {shell or json.dumps(self.lab.shell())}\n{'' if job is more else more}")
        process = subprocess.Popen([*self.lab.enter(0, self.folder), str(DTRUN), "doctor", "--json", "--config",
                                    str(config), "--timeout", timeout], cwd=self.folder, env=self.environment(), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
        self.addCleanup(end, process)
        begin = time.monotonic()
        result = Job(process, self.folder).finish()
        return result, json.loads(result.out), time.monotonic() - begin

    def test_all_hosts_answer(self):
        result, report, seconds = self.doctor()
        self.assertEqual([host["host"] for host in report["hosts"]], self.lab.names, str(result))
        for host in report["hosts"]:
            names = [check["what"] for check in host["checks"] if check["topic"] == "names"]
            self.golden("\n".join(names), "3 of 3")
        self.assertIn("clocks", [check["topic"] for check in report["between"]])
        print(f"three hosts in {seconds:.1f} s")

    def test_a_name_with_an_address_of_no_interface_is_a_warning(self):
        (self.lab.folder / "hosts").write_text("127.0.0.1 localhost\n10.77.0.99 node0\n")
        process = subprocess.Popen([*self.lab.enter(0, self.folder), str(DTRUN), "doctor", "--json"], cwd=self.folder,
                                   env=self.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, errors="replace")
        self.addCleanup(end, process)
        checks = json.loads(Job(process, self.folder).finish().out)["hosts"][0]["checks"]
        found = [check for check in checks if check["topic"] == "names"]
        self.assertEqual(found[0]["level"], "warning", found)
        self.golden_lines(found[0]["what"], "'node0'", "10.77.0.99")

    def test_a_host_that_cannot_be_reached_is_a_problem_and_the_rest_is_told(self):
        result, report, _ = self.doctor([*self.lab.names[:2], "nowhere"], 'join_timeout = "30s"\n')
        self.assertEqual(result.code, 1)
        self.assertEqual([host["host"] for host in report["hosts"]], self.lab.names[:2])
        missing = [check for check in report["between"] if check["topic"] == "cluster"]
        self.assertEqual([check["level"] for check in missing], ["problem"])
        self.golden(missing[0]["what"], "nowhere")

    def test_the_program_and_its_folder_are_looked_for_on_every_host(self):
        place = self.folder / "only-here"
        place.mkdir()
        subprocess.run([*self.lab.enter(0), "mount", "-t", "tmpfs", "none", place], check=True)
        self.addCleanup(subprocess.run, [*self.lab.enter(0), "umount", place])
        subprocess.run([*self.lab.enter(0), "sh", "-c", f"mkdir {place}/work; cp /bin/true {place}/work/train"], check=True)
        result, report, _ = self.doctor(more=f'[job]\ncommand = ["./train"]\ncwd = "{place}/work"\n')
        self.assertEqual(result.code, 1, str(result))
        for host in report["hosts"]:
            found = [check["level"] for check in host["checks"] if check["topic"] == "program"]
            self.assertEqual(found, ["ok"] if host["host"] == "node0" else ["problem", "problem"], host["host"])

    def test_a_silent_host_costs_no_more_than_the_time_limit_and_is_named(self):
        deaf = json.dumps(["sh", "-c", "exec sleep 1000"])
        result, report, _ = self.doctor(self.lab.names[:2], timeout="3s", shell=deaf)
        self.assertEqual(result.code, 1, str(result))
        self.assertEqual([host["host"] for host in report["hosts"]], self.lab.names[:1])
        self.assertTrue(any("host node1 " in check["what"] and ": sh " in check["what"]
                            for check in report["between"]), report["between"])


@unittest.skipIf(why_not() or not find("nft"), f"no laboratory of hosts: {why_not() or 'nft is not installed'}")
class Networks(JobTest):
    """Three hosts with the network eth0, and a pod network per host that leads nowhere."""

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory(prefix="dtrun-site-")
        self.addCleanup(folder.cleanup)
        self.site = Site(folder.name, "10.5.0.{}")
        self.addCleanup(self.site.close)
        for i in range(3):
            self.site.bridge(i, "kube-bridge", f"10.244.{i}.1/24")

    def doctor(self, *arguments, interface="auto", passes=None, root="10.5.0.1", lay=True, **card):
        if lay:
            for i in range(3):
                self.site.wire(i, "eth0", "red", f"10.5.0.{i + 1}/24", **card)
            if passes:
                self.site.narrow("red", passes)
            self.site.lay()
        key = self.write(secrets.token_hex(32), "key")
        key.chmod(0o600)
        config = self.write(
            f'[job]\ncommand = ["true"]\n[cluster]\nhosts = {json.dumps(self.site.names)}\nconnect = "manual"\n'
            f'root = "{root}:29400"\nkey_file = "{key}"\njoin_timeout = "60s"\n[network]\ninterface = "{interface}"\n')
        begin = time.monotonic()
        jobs = []
        for i in range(3):
            process = subprocess.Popen([*self.site.enter(i, self.folder), str(DTRUN), "doctor", *arguments, "--config",
                                        str(config), "--host-index", str(i)], cwd=self.folder, env=self.environment(),
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                       errors="replace")
            self.addCleanup(end, process)
            jobs.append(Job(process, self.folder))
        result = [job.finish() for job in jobs][0]
        print(f"doctor in {time.monotonic() - begin:.1f} s")
        return result

    def between(self, report, topic):
        return [check for check in report["between"] if check["topic"] == topic]

    def test_names_the_choice_and_shows_who_reaches_whom(self):
        result = self.doctor("--json")
        report = json.loads(result.out)
        choice, others = self.between(report, "network")
        self.assertRegex(choice["what"], r"^eth0 on all 3 hosts \(10\.5\.0\.1\), .*bit/s", str(result))
        self.assertIn("not used: kube-bridge 10.244.0.1: not connected", others["what"])
        links = self.between(report, "links")[0]
        self.assertEqual(links["level"], "ok")  # a network of pods need not reach other hosts
        self.assertIn("node0     .      eth0   eth0", links["what"])
        self.assertEqual([link["interfaces"] for link in report["links"]], [["eth0"]] * 6)

    def test_a_second_network_that_joins_only_some_is_a_warning(self):
        for i in range(3):
            self.site.wire(i, "eth1", "blue", f"10.6.0.{i + 1}/24")
        self.site.firewall(2, 'iifname "eth1" ip saddr 10.6.0.1 drop')
        report = json.loads(self.doctor("--json").out)
        self.assertIn("on all 3 hosts", self.between(report, "network")[0]["what"])
        links = self.between(report, "links")[0]
        self.assertEqual(links["level"], "warning")
        self.golden_lines(links["what"], "eth1 10.6.0.1 of node0", "node2")
        self.assertIn("firewall", links["fix"])

    def test_one_address_on_two_hosts_is_a_warning_that_names_both(self):
        for i in range(3):
            self.site.wire(i, "eth1", "blue", "10.6.0.1/24" if i < 2 else "10.6.0.3/24")
        report = json.loads(self.doctor("--json").out)
        found = [check["what"] for check in self.between(report, "network") if check["what"].startswith("10.6.0.1 ")]
        self.golden("\n".join(found), "node0 (eth1)", "node1 (eth1)")

    def test_lost_packets_and_a_slow_host_are_warnings(self):
        self.site.firewall(1, 'iifname "eth0" numgen random mod 100 < 10 drop')
        for i in range(3):
            self.site.wire(i, "eth1", "blue", f"10.6.0.{i + 1}/24", **({"rate": "1mbit", "rate_in": "1mbit"} if i == 2 else {}))
        for interface, text in (("eth0", r"packets get lost: .* from eth0 of node0 to eth0 of node1"),
                                ("eth1", r"node2 is the slow host: \S+ Mbit/s by its eth1")):
            with self.subTest(interface=interface):
                for attempt in range(3):  # a busy machine sends few packets, and chance may lose none of them
                    lay = interface == "eth0" and attempt == 0
                    report = json.loads(self.doctor("--json", interface=interface, root="10.6.0.1", lay=lay).out)
                    warnings = [check["what"] for check in self.between(report, "network") if check["level"] == "warning"]
                    if re.search(text, "\n".join(warnings)):
                        break
                self.assertRegex("\n".join(warnings), text)

    def test_of_many_bridges_a_few_are_named(self):
        for i in range(3):
            for n in range(30):
                self.site.bridge(i, f"br-{n:02d}", f"172.{16 + n}.{i}.1/24")
        report = json.loads(self.doctor("--json").out)
        running = next(check["what"] for check in report["hosts"][0]["checks"] if check["what"].startswith("running: "))
        self.assertIn("eth0 (10.5.0.1/24, MTU 1500)", running)
        self.assertIn("25 more of kind bridge", running)

    def test_hosts_that_do_not_reach_each_other_are_a_problem_with_the_pairs(self):
        self.site.firewall(1, 'iifname "eth0" ip saddr 10.5.0.3 drop')
        result = self.doctor()
        self.assertEqual(result.code, 1, str(result))
        self.golden_lines(result.out, "problem  network ")
        self.assertIn("node1     eth0   .      none\n", result.out)
        self.assertIn("node2     eth0   none   .\n", result.out)

    def test_a_network_that_swallows_large_packets_is_named_though_hosts_are_lost(self):
        result = self.doctor(passes=1500, mtu=9000, offload=False)
        self.assertEqual(result.code, 1, str(result))
        self.assertRegex(result.out, r"(?s)problem  network .*large ones .*MTU")
        self.assertRegex(result.out, r"problem  cluster .*host node\d ")
        self.assertIn("backend gloo", result.out)  # of this host

    def test_a_rule_that_fits_no_host_is_a_problem(self):
        result = self.doctor(interface="etg0")
        self.assertEqual(result.code, 1, str(result))
        self.golden_lines(result.out, "'etg0'")


if __name__ == "__main__":
    main()
