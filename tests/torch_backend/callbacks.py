"""Callbacks of futures that wait, raise, stand, start operations or end the group: no other future waits for them for ever."""

import contextlib
import ctypes
import sys
import threading
from datetime import timedelta

import torch
import torch.distributed as dist
from checks import equal, refused, run

import dtrun.torch
from dtrun.torch import following


def started(value=1.0, group=None):
    return dist.all_reduce(torch.full((100,), value), group=group, async_op=True).get_future()


_standing = []


def standing_until(leave, rank, group=None):
    """A future; on rank 0 its callback stands, on a thread of the group: the others start the operation once it is attached,
    since torch runs callbacks of what has ended in the caller."""
    _standing.append(leave)
    store, key = dist.group.WORLD.get_group_store(), f"standing/{len(_standing)}"
    if rank:
        store.wait([key])
        return started(group=group)
    future = started(group=group).then(lambda done: leave.wait())
    store.set(key, "")
    return future


def check_a_callback_waits_for_a_future_that_it_asks_for_to_any_depth(rank, world):
    def deeper(done, left):
        value = done.value()[0][0].item() / world
        return deeper_of(left - 1, value + 1) if left else value

    def deeper_of(left, value):
        return started(value).then(lambda done: deeper(done, left)).wait()

    assert deeper_of(20, 1.0) == 21


def check_a_callback_waits_for_a_later_future(rank, world):
    futures = [started(float(i)) for i in range(4)]
    chained = [future.then(lambda done, after=after: after.wait()[0][0].item()) for future, after in zip(futures, futures[1:])]
    assert [child.wait() for child in chained] == [world * i for i in (1, 2, 3)]


def check_a_callback_that_stands_holds_up_no_other(rank, world):
    leave = threading.Event()
    standing = standing_until(leave, rank)
    for i in range(5):
        equal(started(float(i)).then(lambda done: done.value()[0]).wait()[:1], [world * i])
    assert rank or not standing.done()
    leave.set()
    standing.wait()


def check_a_callback_that_raises_ends_its_own_future_alone(rank, world):
    def fail(done):
        raise ValueError("of the program")

    futures = [started(float(i)) for i in range(3)]
    futures[0].add_done_callback(fail)
    refused(futures[1].then(fail).wait, Exception, "of the program")
    equal(futures[2].wait()[0][:1], [2 * world])
    equal(started().wait()[0][:1], [world])


def check_callbacks_run_in_the_order_of_their_operations_and_may_start_others(rank, world):
    order, sums = [], [None] * 8

    def next_one(done, i):
        order.append(i)
        sums[i] = started(float(i)).wait()[0][0].item()  # mixed up, ranks would add what differs

    attached = threading.Event()  # before that none ends: torch would run its callback here, beside what is started here
    dist.group.WORLD._follow.in_order(attached.wait, lambda: None)
    leave = [started(float(i)).then(lambda done, i=i: next_one(done, i)) for i in range(8)]
    attached.set()
    for child in leave:
        child.wait()
    assert order == list(range(8)), order
    assert sums == [world * i for i in range(8)], sums


def in_callbacks(*calls):
    """Futures with these callbacks, in order, each attached before the first operation ends."""
    attached = threading.Event()
    dist.group.WORLD._follow.in_order(attached.wait, lambda: None)
    futures = [started().then(lambda done, call=call: call()) for call in calls]
    attached.set()
    return futures


@contextlib.contextmanager
def patience(seconds):
    before, following._PATIENCE_S = following._PATIENCE_S, seconds
    try:
        yield
    finally:
        following._PATIENCE_S = before


def check_a_callback_beside_an_earlier_one_starts_nothing_before_it(rank, world):
    beside, began = threading.Event(), threading.Event()

    def first():
        if rank == 0:
            beside.wait()  # the second was not held up for ever
            began.wait(0.5)  # ... and has started its operation, if it may
        return started(1.0).wait()[0][0].item()

    def second():
        beside.set()
        future = started(2.0)
        began.set()
        return future.wait()[0][0].item()

    with patience(0.1):
        sums = [future.wait() for future in in_callbacks(first, second)]
    assert sums == [world, 2 * world], sums  # mixed up, ranks would add what differs


def check_a_callback_that_an_earlier_one_waits_for_fails_to_start_an_operation(rank, world):
    leave = threading.Event()
    with patience(0.1):
        first, second, third = in_callbacks(leave.wait, lambda: following.await_turn("allreduce", 0.1), lambda: following.overtakers)
        refused(second.wait, Exception, "allreduce: the callback of an earlier future still runs after 0.1 s")
        third.wait()  # which starts nothing
        leave.set()
        first.wait()


def check_a_callback_that_keeps_the_interpreter_for_long(rank, world):
    busy = started().then(lambda done: ctypes.PyDLL(None).usleep(1200 * 1000))
    equal(started().wait()[0][:1], [world])
    busy.wait()


def check_a_callback_may_end_the_group(rank, world):
    group = dist.new_group(list(range(world)))
    ended = started(group=group).then(lambda done: dist.destroy_process_group(group))
    behind = [ended.then(lambda done: started().wait()[0][0].item())]
    assert behind[0].wait() == world


def check_a_thread_waits_while_another_asks_for_the_future(rank, world):
    if rank == 0:
        x = torch.zeros(1)
        work = dist.irecv(x, 1)
        waits = threading.Thread(target=work.wait)
        waits.start()
        future = work.get_future()  # does not wait for the thread
        dist.send(torch.ones(1), 1, tag=1)
        future.wait()
        waits.join()
        equal(x, [5])
    elif rank == 1:
        dist.recv(torch.zeros(1), 0, tag=1)
        dist.send(torch.full((1,), 5.0), 0)


def check_a_limit_holds_in_a_callback_and_while_one_stands(rank, world):
    group = dist.new_group(list(range(world)), timeout=timedelta(seconds=15))  # the first operation connects the ranks
    leave = threading.Event()
    standing = standing_until(leave, rank, group)
    if rank == 0:  # the others do not come
        inside = started(group=group).then(lambda done: done.value())
        refused(inside.wait, RuntimeError, "backend.timeout")
    leave.set()
    standing.wait()


if __name__ == "__main__":
    run(sys.modules[__name__])
