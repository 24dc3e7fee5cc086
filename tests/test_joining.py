"""How hosts join across networks that stand in the way, and what is said when they cannot."""

import json
import os
import secrets
import signal
import subprocess

from support.cluster import ClusterTest, open_lab
from support.job import RANK, main
from support.lab import find

LAB = None
CONTROL = 29700  # of the root, so that a firewall can name it


def setUpModule():
    global LAB
    LAB = open_lab()


class JoiningTest(ClusterTest):
    def firewall(self, verdict, host=0, port=CONTROL):
        """Lets no connection into `port` of a host; "drop" without an answer."""
        rules = f"table inet f {{\n chain c {{\n type filter hook input priority 0;\n tcp dport {port} {verdict}\n }}\n}}\n"
        nft = [*LAB.enter(host), find("nft")]
        subprocess.run([*nft, "-f", "-"], input=rules, text=True, check=True)
        self.addCleanup(subprocess.run, [*nft, "delete", "table", "inet", "f"], check=True)

    def through_the_wall(self, command, hosts, more=""):
        return self.config(command, hosts=hosts, more=f'root = "{LAB.address(0)}:{CONTROL}"\n{more}')

    def with_shell(self, file, words):
        text = file.read_text()
        file.write_text(text.replace(json.dumps(LAB.shell()), json.dumps(words)))
        return file

    def error_of(self, job, text):
        """What `job` has printed on stderr once `text` is in it; the pipe is read no further."""
        seen = ""
        for line in job.process.stderr:
            seen += line
            if text in line:
                return seen
        raise AssertionError(f"'{text}' was never said\n{seen}")


class Progress(JoiningTest):
    def test_who_is_missing_is_said_soon_and_for_how_long_dtrun_tries(self):
        file = self.config(["true"], hosts=["node0", "nowhere"], more='join_timeout = "3m"\n')
        job = self.start_on(0, "--config", file, env=self.environment(KUBERNETES_SERVICE_HOST="10.0.0.1"))
        line = self.error_of(job, "missing: ").splitlines()[-1]
        self.golden(line, "1 of 2 ", "nowhere")
        again = self.error_of(job, "still ").splitlines()[-1]
        self.assertRegex(again, r"1 of 2 .* 1\ds of 3m$")
        job.signal(signal.SIGTERM)
        job.process.communicate()
        self.assertEqual(job.process.returncode, 143)

    def test_an_agent_that_is_killed_meanwhile_is_started_again(self):
        go = self.folder / "go"
        late = self.write(f'#!/bin/sh\nfor word; do [ "$word" != node2 ] || until [ -e {go} ]; do sleep 0.05; done; done\nexec "$@"\n',
                          "late-ssh")
        late.chmod(0o755)
        file = self.with_shell(self.config(["true"], hosts=["node0", "node1", "node2"]), [str(late), *LAB.shell()])
        job = self.start_on(0, "--config", file)
        self.error_of(job, "2 of 3 hosts joined")
        _, agent = sorted(pid for pid in LAB.processes_on(1) if command_line(pid).endswith(b"/dtrun\0agent\0"))
        os.kill(agent, signal.SIGKILL)
        self.error_of(job, "node1 was lost while hosts joined")
        go.touch()
        self.assert_ok(job.finish())


class TheLink(JoiningTest):
    def test_it_goes_through_ssh_where_packets_to_the_root_get_lost(self):
        self.firewall("drop")
        result = self.start_on(0, "--config", self.through_the_wall([RANK], ["node1", "node2"])).finish()
        self.assert_ok(result)
        for rank in range(4):
            self.assertIn(f"rank {rank} of 4 over shm+gloo: sum 10\n", result.out)
        for host in ("node1", "node2"):
            self.golden_lines(result.err, f"dtrun: {host}: ", f"{LAB.address(0)}:{CONTROL}")

    def test_it_goes_through_ssh_where_the_root_refuses_and_carries_all_that_ranks_print(self):
        self.firewall("reject with tcp reset")
        file = self.through_the_wall(["seq", "1", "100000"], ["node0", "node1"])
        file.write_text(file.read_text().replace("processes_per_host = 2", "processes_per_host = 1"))
        job = self.start_on(0, "--config", file)
        result = job.finish()
        self.assert_ok(result)
        self.assertIn("Connection refused", result.err)
        self.assertEqual(job.log(1), "".join(f"{i}\n" for i in range(1, 100001)))

    def test_it_restarts_through_ssh_and_ends_with_the_ranks(self):
        self.firewall("reject with tcp reset")
        script = "[ $DTRUN_GENERATION = 1 ] || { [ $RANK = 3 ] && kill -9 $$; exec sleep 1000; }; [ $RANK = 2 ] && exit 5; exec sleep 1000"
        file = self.through_the_wall(["sh", "-c", script], ["node1", "node2"], "[restart]\nmax = 1\n")
        result = self.start_on(0, "--config", file).finish()
        self.assertEqual(result.code, 5, str(result))
        self.assert_verdict(result, ending=(2, 5), first_failed_rank=2)
        self.assertEqual(result.err.count("goes through ssh"), 2, result.err)

    def test_a_lost_host_is_still_noticed(self):
        self.firewall("reject with tcp reset")
        job = self.start_on(0, "--config", self.through_the_wall(["sh", "-c", "echo ready; exec sleep 1000"],
                                                                 ["node1", "node2"]))
        for rank in range(4):
            job.wait_for_line(rank, "ready")
        shells = [pid for pid in LAB.processes_on(0) if b"node2" in command_line(pid) and b"ssh" in command_line(pid)]
        self.assertEqual(len(shells), 1)
        subprocess.run(["kill", "-KILL", str(shells[0])], check=True)
        result = job.finish()
        self.assertNotEqual(result.code, 0, str(result))
        self.assertIn("node2", result.err)

    def test_of_200_interfaces_the_right_one_is_found(self):
        lines = "".join(f"link add d{i} type bridge\nlink set d{i} up\naddress add 10.{100 + i // 250}.{i % 250}.1/24 dev d{i}\n"
                        for i in range(200))
        ip = [*LAB.enter(0), find("ip"), "-batch", "-"]
        self.addCleanup(subprocess.run, ip, input="".join(f"link del d{i}\n" for i in range(200)), text=True, check=True)
        subprocess.run(ip, input=lines, text=True, check=True)
        # By name: the root cannot know which of its addresses leads there. Those that do not lose packets.
        result = self.start_on(0, "--config", self.config(
            ["true"], hosts=["node0", "node1"], more='join_timeout = "20s"\n[network]\ninterface = "eth0"\n')).finish()
        self.assert_ok(result)
        self.assertNotIn("goes through", result.err)

    def test_a_shell_that_prints_without_end_stops_nobody(self):
        noisy = ["sh", "-c", 'head -c 50000000 /dev/zero | tr "\\0" x; exec "$@"', "sh", *LAB.shell()]
        result = self.start_on(0, "--config", self.with_shell(self.config(["true"], hosts=["node0", "node1"]), noisy)).finish()
        self.assert_ok(result)


class Ports(JoiningTest):
    def window(self):
        for host in range(3):
            rules = ("table inet w {\n chain c {\n type filter hook input priority 0; policy drop;\n iif lo accept\n"
                     " ct state established,related accept\n tcp dport { 22, 29710-29730 } accept\n }\n}\n")
            nft = [*LAB.enter(host), find("nft")]
            subprocess.run([*nft, "-f", "-"], input=rules, text=True, check=True)
            self.addCleanup(subprocess.run, [*nft, "delete", "table", "inet", "w"], check=True)

    def test_gloo_listens_in_the_window(self):
        self.window()
        result = self.start_on(0, "-v", "--config", self.config([str(RANK)], more='port_range = "29710-29730"\n')).finish()
        self.assert_ok(result)
        self.assertIn("rank 5 of 6 over shm+gloo: sum 21\n", result.out)
        self.golden_lines(result.err, "cluster.port_range=29710-29730")

    def test_gloo_names_the_port_that_does_not_answer(self):
        for host in (1, 2):
            self.firewall("drop", host=host, port="29710-29730")
        file = self.config([str(RANK)], ranks=1, more='port_range = "29710-29730"\n[network]\ninterface = "off"\n'
                           '[backend]\ntimeout = "3s"\noptions = { interface = "eth0" }\n')
        result = self.start_on(0, "--config", file).finish()
        self.assertNotEqual(result.code, 0)
        self.assertRegex(result.err, r"Connect timeout \[[0-9.]+\]:297[123][0-9]\b", str(result))

    def test_a_window_in_the_firewall_is_enough(self):
        self.window()
        meet = ("import os, socket, time\n"
                "port = int(os.environ['MASTER_PORT'])\n"
                "if os.environ['RANK'] == '0':\n"
                "    server = socket.create_server(('', port))\n"
                "    peers = [server.accept() for _ in range(5)]\n"
                "else:\n"
                "    while True:\n"
                "        try: socket.create_connection((os.environ['MASTER_ADDR'], port), 2); break\n"
                "        except OSError: time.sleep(0.02)\n"
                "print('port', port, os.environ['UCX_TCP_PORT_RANGE'], os.environ['OMPI_MCA_btl_tcp_port_min_v4'])\n")
        result = self.start_on(0, "--config", self.config(
            ["python3", "-c", meet], more='port_range = "29710-29730"\n')).finish()
        self.assert_ok(result)
        self.assertNotIn("goes through", result.err)
        self.assertIn("eth0 on all 3 hosts", result.err)
        for line in result.out.splitlines():
            self.assertRegex(line, r"port 297[123][0-9] 29710-29730 29710$")

    def test_a_window_that_is_none(self):
        result = self.run_cluster("true", more='port_range = "many"\n')
        self.golden_error(result, "cluster.port_range", "'many'", "FIRST-LAST")


class WhyNot(JoiningTest):
    def refused(self, file):
        result = self.start_on(0, "--config", file).finish()
        self.assertEqual(result.code, 2, str(result))
        return result.err

    def test_a_host_that_cannot_call_back_by_any_way(self):
        self.firewall("drop")
        deaf = ["sh", "-c", 'exec "$@" | grep --line-buffered " here "', "sh", *LAB.shell()]
        file = self.through_the_wall(["true"], ["node1", "node2"], 'join_timeout = "20s"\n')
        self.golden_lines(self.refused(self.with_shell(file, deaf)), "dtrun: not all ", "missing: node1, node2: ", f"{LAB.address(0)}:{CONTROL}")

    def test_a_silent_shell(self):
        file = self.config(["true"], hosts=["node0", "node1"], more='join_timeout = "3s"\n')
        error = self.refused(self.with_shell(file, ["sh", "-c", "exec sleep 1000"]))
        self.golden_lines(error, "dtrun: not all ", "node1: sh ", "`sh -c 'exec sleep 1000' node1 true`")

    def test_a_host_started_by_hand_says_at_once_that_its_root_gives_no_answer(self):
        self.firewall("drop")
        key = self.write(secrets.token_hex(32), "key")
        key.chmod(0o600)
        file = self.through_the_wall(["true"], self.hosts, f'connect = "manual"\nkey_file = "{key}"\n')
        node = self.start_on(1, "--config", file, "--host-index", 1)
        self.error_of(node, f"dtrun: node1: cannot reach {LAB.address(0)}:{CONTROL}: no answer")
        self.assertIsNone(node.process.poll())  # it goes on trying
        node.signal(15)
        node.process.wait()

    def test_one_machine_under_two_names_ends_the_job(self):
        key = self.write(secrets.token_hex(32), "key")
        key.chmod(0o600)
        file = self.write(f'[job]\ncommand = ["true"]\n[cluster]\nhost_count = 2\nconnect = "manual"\n'
                          f'root = "{LAB.address(0)}:{CONTROL}"\nkey_file = "{key}"\n')
        jobs = [self.start_on(0, "--config", file) for _ in range(2)]
        results = [job.finish() for job in jobs]
        for result in results:
            self.assertEqual(result.code, 2, str(result))
            self.assertRegex(result.err, "hosts node0 and node0(#1)? ")

    def test_an_agent_that_was_not_started(self):
        with open("/dev/null") as nothing:
            result = self.start_on(1, "agent", stdin=nothing).finish()
        self.golden_error(result, "`dtrun agent`")


def command_line(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


if __name__ == "__main__":
    main()
