"""Ways to hang with torch's gloo: at its fourth step one rank does what the first argument says, and the others wait.

DIR is a folder of the test; rank 1 is the one. With "-" every rank does its steps, and the job succeeds.
"""

import ctypes
import datetime
import fcntl
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time

import torch
import torch.distributed as dist

way = sys.argv[1]
place = os.environ["DIR"]
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=int(sys.argv[2])))
rank = dist.get_rank()


class Stuck(torch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        time.sleep(10000)


def keep_the_lock():
    ctypes.PyDLL(None).sleep(10000)  # without giving up the interpreter's lock


def until_locked(path):
    if os.fork() == 0:
        held = open(path, "w")
        fcntl.flock(held, fcntl.LOCK_EX)
        open(path + ".held", "w").close()
        time.sleep(10000)
    while not os.path.exists(path + ".held"):
        time.sleep(0.01)
    return open(path, "w")


def differ():
    """False: go on with the next step, without this one's collective."""
    if way == "sleep":
        time.sleep(10000)
    elif way == "loop":
        while True:
            pass
    elif way == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif way == "lock":
        lock = threading.Lock()
        lock.acquire()
        lock.acquire()
    elif way == "fifo":
        os.mkfifo(place + "/fifo")
        open(place + "/fifo").read()
    elif way == "pipe":
        os.read(os.pipe()[0], 1)
    elif way == "socket":
        ends = socket.socketpair()
        ends[0].recv(1)
    elif way == "child":
        subprocess.run(["sleep", "10000"])
    elif way == "gil":
        threading.Thread(target=keep_the_lock).start()
    elif way == "queue":
        queue.Queue().get()
    elif way == "worker":
        next(iter(torch.utils.data.DataLoader(Stuck(), num_workers=1)))
    elif way == "flock":
        fcntl.flock(until_locked(place + "/lock"), fcntl.LOCK_EX)
    elif way == "left":
        os._exit(0)
    elif way == "skip":
        return False
    elif way == "order":
        dist.barrier()
        return False
    elif way == "shape":
        dist.all_reduce(torch.ones(1000))
        return False
    return True


for step in range(6):
    if rank == 1 and step == 3 and not differ():
        continue
    dist.all_reduce(torch.ones(10))
    dist.barrier()
dist.destroy_process_group()  # else a worker of torch 1.13 may free its tensor when Python is gone, and abort
print("done", rank, flush=True)
