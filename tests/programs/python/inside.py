"""A thread of rank 1 is inside a call that waits for rank 0, which answers later: while, as the argument says, the main thread ends
the communicator or the program, or a signal handler of the main thread, which is inside itself, calls finalize."""

import os
import signal
import sys
import threading
import time

import numpy
from checks import refused, stand_inside

import dtrun

how, go = sys.argv[1:]
world = dtrun.init()
part = world.split(0)
got = numpy.zeros(1)
CALLS = {
    "recv": lambda: part.recv(got, 0),
    "wait": lambda: part.recv(got, 0, wait=False).wait(),
    "split": lambda: refused(lambda: part.split(0).barrier(), error=dtrun.Error),
    "group": lambda: group(),
}


def group():
    with part.group():
        part.recv(got, 0)


def answer():
    while not os.path.exists(go):
        time.sleep(0.001)
    if how.endswith("split"):
        part.split(0)
    else:
        part.send(numpy.ones(1), 1)


def begin(call):
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    return thread


def when_ended(act):
    """Calls `act` on a thread once `part` takes no new calls."""

    def watch():
        while "ended" not in repr(part):
            time.sleep(0.001)
        refused(part.barrier, "has ended", error=dtrun.FailedPrecondition)
        act()

    return begin(watch)


def let_go():
    open(go, "w").close()


def interrupt():
    stand_inside(threading.main_thread())
    os.kill(os.getpid(), signal.SIGUSR1)  # its handler runs when the call returns
    let_go()


end, _, call = how.partition("-")
if end == "stuck":
    dtrun.process._EXIT_S = 0.01
    stand_inside(begin(CALLS["recv"] if world.rank else lambda: part.recv(got, 1)))
elif world.rank == 0:
    if end != "abort":
        answer()
    else:
        refused(lambda: part.recv(got, 1), error=dtrun.Error)
elif end == "handler":
    signal.signal(signal.SIGUSR1, lambda *_: dtrun.finalize())
    watcher = begin(interrupt)
    CALLS[call]()
    watcher.join()
    assert got == 1 and not dtrun.is_initialized()
elif end == "abort":
    thread = begin(lambda: refused(CALLS["recv"], "too late", error=dtrun.Aborted))
    stand_inside(thread)
    when_ended(lambda: part.abort("too late"))
    part.free()
    thread.join()
else:
    thread = begin(CALLS[call])
    stand_inside(thread)
    when_ended(let_go)
    if end != "return":
        {"free": part.free, "finalize": dtrun.finalize}[end]()
        thread.join()
        assert call == "split" or got == 1
print(f"rank {world.rank} of {world.size} is done", flush=True)
