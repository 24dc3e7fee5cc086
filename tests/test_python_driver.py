"""The driver of dtrun.spark and dtrun.ray: its channel, and the results of its tasks."""

from support.job import main
from support.python import PythonTest


class Driver(PythonTest):
    def test_only_who_has_the_key_is_heard(self):
        result = self.python("""
import json, socket
from dtrun.tasks.channel import HEAD, Listener, Speaker

key = b"k" * 32
with Listener(key) as listener:
    address = ("127.0.0.1", listener.port)
    for proof, frame in ((b"x" * 32, HEAD.pack(b"o", 1) + b"x"), (key, HEAD.pack(b"?", 1) + b"x"), (key, HEAD.pack(b"o", 1 << 31))):
        stranger = Speaker(address, proof)
        try:
            stranger.socket.sendall(frame)
            assert stranger.socket.recv(1) == b""
        except ConnectionError:
            pass  # closed before it was read
    silent = socket.create_connection(address)
    task = Speaker(address, key)
    task.stream(b"o").write("rank 0 prints\\n" * 3)
    task.send(b"f", json.dumps({"host": 0}))
    task.close()
print(listener.failures)
""")
        self.assert_ok(result)
        self.assertEqual(result.out, "rank 0 prints\n" * 3 + "[{'host': 0}]\n")

    def test_a_task_without_a_result_of_its_rank(self):
        result = self.python("""
import concurrent.futures, pickle
import dtrun
from dtrun.tasks import member
from dtrun.tasks.driver import Driver

def outcome(end):
    word = f"{end} if __import__('os').environ['RANK'] == '1' else 7"
    with Driver("dtrun.spark.run", eval, [word], None, 2, None, None, pickle.dumps) as driver:
        job, root = driver.job("127.0.0.1"), f"127.0.0.1:{member.free_port()}"
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            found = list(pool.map(lambda index: member.take_part(job, index, lambda: root, dict), range(2)))
    try:
        print(driver.results({i: data for i, data in enumerate(found) if data is not None}, None))
    except dtrun.JobFailed as error:
        print(error.rank, error.exit_code, error)

for end in ("8", "__import__('os')._exit(0)", "exit(0)"):
    outcome(end)
""")
        self.assert_ok(result)
        lines = result.out.splitlines()
        self.assertEqual(lines[0], "[7, 8]")
        self.assertEqual(len(lines), 3, result)
        for line in lines[1:]:
            self.assertTrue(line.startswith("1 0 dtrun.spark.run: rank 1 ended with exit code 0 and without a result: "), result)


if __name__ == "__main__":
    main()
