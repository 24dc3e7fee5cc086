"""Who waits for whom where ranks work in groups, in pairs or alone: explain, top and the verdict."""

import json
import sys

from support.job import PACKAGE, JobTest, main, needs_stacks, needs_torch, until

# Ranks 0 and 1 train in a group of their own, of which rank 1 is slow; rank 2 evaluates alone.
TORCH_EVALUATOR = """import time, torch, torch.distributed as dist
dist.init_process_group("gloo")
group = dist.new_group([0, 1])
dist.barrier()
print("ready", flush=True)
while True:
    time.sleep((0.01, 0.3, 3)[dist.get_rank()])
    if dist.get_rank() < 2: dist.all_reduce(torch.ones(4), group=group)
"""
EVALUATOR = """import array, sys, time, dtrun
world = dtrun.init()
group = world.split(world.rank // 2)
print("ready", flush=True)
for step in range(int(sys.argv[1])):
    time.sleep((0.01, 0.3, 0.9)[world.rank])
    if world.rank < 2: group.allreduce(array.array("f", [1.0]))
    elif step > int(sys.argv[1]) // 3: break
"""
# Stage 0 works, stage 1 receives from it, stage 2 works on what it has.
STAGES = """import time, torch, torch.distributed as dist
dist.init_process_group("gloo")
dist.barrier()
print("ready", flush=True)
if dist.get_rank() == 1: dist.recv(torch.ones(4), src=0)
time.sleep(1000)
"""
CIRCLE = """import array, dtrun
world = dtrun.init()
groups = [world.split(0), world.split(0)]
print("ready", flush=True)
for group in groups if world.rank else reversed(groups): group.allreduce(array.array("f", [1.0]))
"""


class Groups(JobTest):
    def begin(self, ranks, text, *words):
        env = self.environment(**PACKAGE)
        self.job = self.start_ranks(ranks, sys.executable, self.write(text, "train.py"), *words, env=env)
        self.folder = until(self.job.run_dir, "a run directory")
        for rank in range(ranks):
            self.job.wait_for_line(rank, "ready")

    def end(self):
        self.assert_ok(self.dtrun("stop", self.folder))
        self.job.finish()

    def explained(self, text):
        until(lambda: text in self.dtrun("explain", self.folder).out, f"'{text}'")

    def shares(self):
        seen = json.loads(self.dtrun("top", self.folder, "--json", "--seconds", "3").out)
        return seen["straggler"], {rank["rank"]: rank["delays_others"] for rank in seen["ranks"]}

    def assert_the_slow_rank_alone_delays(self):
        straggler, delays = until(lambda: (seen := self.shares())[0] is not None and seen, "a straggler")
        self.assertEqual((straggler, delays[2]), (1, 0), delays)

    @needs_torch
    @needs_stacks
    def test_a_rank_outside_the_group_of_torch_delays_no_one(self):
        self.begin(3, TORCH_EVALUATOR)
        self.assert_the_slow_rank_alone_delays()
        self.end()

    @needs_torch
    @needs_stacks
    def test_a_receive_of_torch_waits_for_its_sender(self):
        self.begin(3, STAGES)
        self.explained("rank 1 waits for rank 0\n")
        self.end()

    def test_a_rank_outside_the_communicator_delays_no_one(self):
        self.begin(3, EVALUATOR, "1000000")
        self.assert_the_slow_rank_alone_delays()
        self.end()

    def test_the_verdict_names_no_rank_outside_the_communicator(self):
        program = (sys.executable, self.write(EVALUATOR, "train.py"), "40")
        self.assert_ok(self.ranks(3, *program, env=self.environment(**PACKAGE)))
        self.assertEqual(self.last_verdict()["straggler"]["rank"], 1)

    def test_collectives_of_two_communicators_in_another_order_are_a_circle(self):
        self.begin(2, CIRCLE)
        self.explained("ranks 0, 1 wait for each other")
        self.end()


if __name__ == "__main__":
    main()
