"""Threads make communicators of two parents at once, on every other rank in the opposite order."""

import threading

import dtrun

world = dtrun.init()
parents = [world.split(0) for _ in range(2)]
order = parents if world.rank % 2 else parents[::-1]
made = []


def make(parent):
    whole, same = parent.split(0), parent.subset(range(world.size))
    for comm in (whole, same):
        assert comm.allgather_object(parent.name) == [parent.name] * world.size
    made.append(parent.name)


for _ in range(10):
    threads = [threading.Thread(target=make, args=(parent,)) for parent in order]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
assert len(made) == 20, made
print(f"rank {world.rank} of {world.size} is done")
dtrun.finalize()
