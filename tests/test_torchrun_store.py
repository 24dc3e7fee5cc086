"""The store of `dtrun torchrun`, at which ranks meet: torch's, served by dtrun's agent."""

import resource
import socket
import unittest

from support.job import main, until
from support.torchrun import TorchrunTest, has_torch

# Clients of torch's store, as torch 1.13 and 2.x connect: `add` counts at a key.
STORE = """import os, socket, struct, sys
def connect(validate):
    store = socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))
    if validate: store.sendall(struct.pack("=BI", 0, 0x3C85F7CE))
    return store
def add(store, op, key):
    store.sendall(struct.pack("=BQ", op, len(key)) + key + struct.pack("=q", 1))
    return struct.unpack("=q", store.recv(8, socket.MSG_WAITALL))[0]
old, new = connect(False), connect(True)
"""


class AgentStore(TorchrunTest):
    def test_is_there_before_any_rank_opens_one(self):
        script = self.write(STORE + "print('counts', sorted([add(old, 3, b'n'), add(new, 4, b'n')]))\n", "store.py")
        result = self.torchrun("--standalone", script)
        self.assert_ok(result)
        self.assertIn("counts [1, 2]\n", result.out)

    def test_is_a_fresh_one_for_each_start(self):
        script = self.write(STORE + "print('count', add(new, 4, b'n'), flush=True)\n"
                            "sys.exit(os.environ['TORCHELASTIC_RESTART_COUNT'] == '0')\n", "store.py")
        result = self.torchrun("--standalone", "--max-restarts=1", script)
        self.assert_ok(result)
        self.assertEqual(result.out.count("count 1\n"), 2, str(result))

    def test_no_other_process_listens_on_its_port(self):
        thief = ("import errno, os, socket\nfor address in ('0.0.0.0', '127.0.0.1'):\n"
                 "    s = socket.socket()\n    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
                 "    try: s.bind((address, int(os.environ['MASTER_PORT']))); s.listen(); print('stolen')\n"
                 "    except OSError as error: print('refused', error.errno == errno.EADDRINUSE)\n")
        result = self.torchrun("--standalone", self.write(thief, "thief.py"))
        self.assert_ok(result)
        self.assertEqual(result.out, "refused True\n" * 2)

    def test_listens_on_loopback_where_its_ranks_do(self):
        script = self.write(STORE + 'print(os.environ["MASTER_ADDR"], "%04X" % int(os.environ["MASTER_PORT"]))\n'
                            'for name in ("tcp", "tcp6"):\n  for line in open(f"/proc/net/{name}"):\n'
                            '    words = line.split()\n    if words[3] == "0A": print("listens", words[1])\n'
                            'add(old, 3, b"k")\n', "listeners.py")
        for words, own in ((["--standalone"], True), (["--master-addr=localhost"], True), (["--master-addr=127.0.0.1"], True),
                           (["--local-addr=" + socket.gethostname()], False)):
            result = self.torchrun("--nproc-per-node=1", *words, script)
            self.assert_ok(result)
            port = result.out.split()[1]
            at = {line.split()[1].split(":")[0] for line in result.out.splitlines() if line.endswith(f":{port}")}
            self.assertTrue(at, result.out)
            self.assertEqual(at <= {"0100007F", "00000000000000000000000001000000"}, own, (words, result.out))

    def test_keeps_its_ranks_among_many_that_say_nothing(self):
        script = self.write(STORE + 'import time\nadd(old, 3, b"k")\nopen("at." + os.environ["RANK"], "w").write('
                            'os.environ["MASTER_PORT"])\nwhile not os.path.exists("go"): time.sleep(0.01)\n'
                            'late = connect(True)\nprint(add(old, 3, b"k") > 2, add(late, 4, b"k") > 2)\n', "late.py")
        job = self.start("torchrun", "--standalone", "--nproc-per-node=2", script)
        files = [self.folder / f"at.{rank}" for rank in (0, 1)]
        until(lambda: all(file.exists() and file.read_text() for file in files), "the ranks")
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        idle = []
        self.addCleanup(lambda: [one.close() for one in idle])
        for _ in range(1500):
            idle.append(socket.create_connection(("127.0.0.1", int(files[0].read_text()))))
        (self.folder / "go").touch()
        result = job.finish()
        self.assert_ok(result)
        self.assertEqual(result.out.count("True True"), 2, str(result))

    def test_may_be_left_to_rank_0(self):
        listen = self.write("import os, socket\nprint(os.environ['TORCHELASTIC_USE_AGENT_STORE'])\n"
                            "socket.create_server(('', int(os.environ['MASTER_PORT'])))\n", "listen.py")
        for env in ({"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"},
                    {"DTRUN_CONFIG_LAUNCHER_OPTIONS_AGENT_STORE": "false"}):
            result = self.torchrun("--standalone", listen, env=self.environment(**env))
            self.assert_ok(result)
            self.assertEqual(result.out, "False\n")

    @unittest.skipUnless(has_torch(), "torch is not installed")
    def test_serves_torch_itself(self):
        script = self.write(
            "import os, datetime, torch, torch.distributed as dist\n"
            "wait = datetime.timedelta(seconds=60)\n"
            "s = dist.TCPStore(os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT']), is_master=False, timeout=wait)\n"
            "rank = os.environ['RANK']\ns.set('own' + rank, rank)\n"
            "assert s.get('own' + str(1 - int(rank))) == str(1 - int(rank)).encode()\n"
            "assert s.compare_set('swap' + rank, '', 'x') == b'x' and s.add('n' + rank, 3) == 3 and s.delete_key('n' + rank)\n"
            "try: s.wait(['never'], datetime.timedelta(milliseconds=200)); raise SystemExit('it came')\n"
            "except RuntimeError: pass\n"
            "dist.init_process_group('gloo')\nt = torch.ones(3)\ndist.all_reduce(t)\nprint('sum', t.sum().item())\n"
            "dist.destroy_process_group()\n", "t.py")
        result = self.torchrun("--standalone", "--nproc-per-node=2", script)
        self.assert_ok(result)
        self.assertEqual(result.out, "sum 6.0\n" * 2)


if __name__ == "__main__":
    main()
