"""The timeline of a job on two hosts: its traces arrive at the root, on one clock."""

import json
import sys

from support.cluster import ClusterTest, open_lab
from support.job import main
from test_python import PACKAGE
from test_trace import TRAIN, check


def setUpModule():
    open_lab()


class TraceOnHosts(ClusterTest):
    hosts = ["node0", "node1"]

    def test_traces_of_other_hosts_arrive_and_their_clocks_are_measured(self):
        more = '[backend]\nname = "gloo"\n[trace]\nenabled = true\n[job.env]\n' + "".join(f'{name} = "{value}"\n' for name, value in PACKAGE.items())
        self.assert_ok(self.run_cluster(sys.executable, self.write(TRAIN, "train.py"), hosts=self.hosts, ranks=1, more=more))
        folder, = self.folder.glob("runs/*/2*")
        self.assert_ok(self.start_on(0, "trace", folder, "--out", self.folder / "t.json").finish())
        text = json.loads((self.folder / "t.json").read_text())
        check(text["traceEvents"])
        self.assertEqual(text["otherData"]["missing"], [])
        clocks = {clock["host"]: clock for clock in text["otherData"]["clocks"]}
        self.assertIn("node1", clocks)
        # Both are one machine: what is measured is wrong by no more than it says.
        self.assertLessEqual(abs(clocks["node1"]["ahead_of_root_us"]), clocks["node1"]["uncertainty_us"])
        calls = [event for event in text["traceEvents"] if event.get("cat") == "collective" and event["name"] == "broadcast"]
        self.assertEqual(len(calls), 2 * 5)
        processes = [event["args"]["name"] for event in text["traceEvents"] if event["name"] == "process_name"]
        self.assertIn("rank 1 on node1", processes)
        self.assertIn("agent on node1", processes)


if __name__ == "__main__":
    main()
