"""The horovod dialect with its rendezvous store: ranks meet as Horovod's gloo controller does."""

import json

from support.cluster import ClusterTest, open_lab
from support.job import main

# What horovod/common/gloo/gloo_context.cc and http_store.cc do in each of the three scopes: put an
# address, wait for those of all others, and say that one has finished.
RANK = """
import http.client, os, sys, time

env = {name[8:]: value for name, value in os.environ.items() if name.startswith("HOROVOD_")}
assert env["CONTROLLER"] == env["CPU_OPERATIONS"] == "gloo", env

def ask(method, path, body=None):
    connection = http.client.HTTPConnection(env["GLOO_RENDEZVOUS_ADDR"], int(env["GLOO_RENDEZVOUS_PORT"]))
    connection.request(method, path, body)
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    assert answer.status in (200, 404), (method, path, answer.status)
    return data if answer.status == 200 else None

def wait(path, gone=False):
    while (ask("GET", path) is None) != gone:
        time.sleep(0.01)

def meet(scope, rank, size):
    ask("PUT", f"/{scope}/{rank}", b"\\0address of " + env["RANK"].encode())
    for peer in range(size):
        wait(f"/{scope}/{peer}")
    peers = [ask("GET", f"/{scope}/{peer}").decode().split()[-1] for peer in range(size)]
    ask("PUT", f"/seen-{scope}/{env['RANK']}", b"")  # all have read before the scope is emptied
    for peer in peers:
        wait(f"/seen-{scope}/{peer}")
    ask("DELETE", f"/{scope}/{rank}")
    wait(f"/{scope}/{rank}", gone=True)
    return ",".join(peers)

number = lambda name: int(env[name])
print("rank", env["RANK"], "met", meet("global", number("RANK"), number("SIZE")),
      meet("local_" + env["HOSTNAME"], number("LOCAL_RANK"), number("LOCAL_SIZE")),
      meet("cross_" + env["LOCAL_RANK"], number("CROSS_RANK"), number("CROSS_SIZE")))
"""
DIALECT = "job.dialects=horovod"


def setUpModule():
    open_lab()


class Horovod(ClusterTest):
    def script(self):
        return ["/usr/bin/python3", str(self.write(RANK, "rank.py"))]

    def test_ranks_of_one_host_meet(self):
        result = self.ranks(3, *self.script(), sets=["backend.name=none", DIALECT])
        self.assert_ok(result)
        for rank in range(3):
            self.assertIn(f"rank {rank} met 0,1,2 0,1,2 {rank}\n", result.out)

    def test_ranks_of_three_hosts_meet_at_the_roots_address(self):
        file = self.config(self.script(), more="[backend]\nname = \"none\"\n")
        file.write_text(file.read_text().replace("[cluster]", "dialects = [\"horovod\"]\n[cluster]"))
        job = self.start_on(0, "--config", file)
        result = job.finish()
        self.assert_ok(result)
        for rank in range(6):
            host, local = divmod(rank, 2)
            self.assertIn(f"rank {rank} met 0,1,2,3,4,5 {2 * host},{2 * host + 1} {local},{2 + local},{4 + local}\n", result.out)
        runtime = json.loads((job.run_dir() / "runtime.json").read_text())
        self.assertIn(self.lab.address(0), json.dumps(runtime))

    def test_the_plan_shows_where_the_store_will_be(self):
        result = self.dtrun("plan", "--set", "backend.name=none", "--set", DIALECT, "--", "true")
        self.assert_ok(result)
        self.assertIn("HOROVOD_GLOO_RENDEZVOUS_PORT=⟦rendezvous_port⟧", result.out)


if __name__ == "__main__":
    main()
