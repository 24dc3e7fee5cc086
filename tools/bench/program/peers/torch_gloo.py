"""A rank of `dtrun bench` that calls torch.distributed with gloo. Started by dtrun.

  torch_gloo.py SOCKET

Speaks the protocol of tools/bench/program/channel.h, with the same loop as serve.cc. The interpreter's
overhead per call is included, because users of torch.distributed pay it too.
"""

import datetime
import socket
import sys
import time

import torch
import torch.distributed as dist

ROOT = 0


class Unsupported(Exception):
    pass


def contribution(rank, count):
    """Fills elements as in tools/bench/program/values.h."""
    return torch.remainder(torch.arange(count) + rank, 3) * (2 if rank == 0 or rank % 2 else 1)


class Call:
    def __init__(self, operation, name, size):
        self.operation, self.rank, self.ranks = operation, dist.get_rank(), dist.get_world_size()
        if operation in ("reduce_scatter", "alltoall", "memcpy"):
            raise Unsupported(f"torch.distributed's gloo has no {operation}")
        dtype = getattr(torch, name, None)
        if dtype is None:
            raise Unsupported(f"torch has no {name}")
        whole = max(size // torch.empty((), dtype=dtype).element_size(), 1)
        count = max(whole // self.ranks, 1) if operation == "allgather" else whole
        self.count = count
        self.send = contribution(self.rank, count).to(dtype)
        if operation in ("allreduce", "reduce"):
            self.recv = self.send.clone()  # torch reduces in place
        elif operation == "broadcast":
            self.recv = self.send.clone() if self.rank == ROOT else torch.full_like(self.send, 7)
        elif operation != "barrier":
            ranks = self.ranks if operation == "allgather" else 1
            self.recv = torch.full((ranks * count,), 7, dtype=dtype)
        if operation == "allgather":
            self.parts = list(self.recv.split(count))

    def run(self):
        if self.operation == "allreduce":
            dist.all_reduce(self.recv)
        elif self.operation == "reduce":
            dist.reduce(self.recv, ROOT)
        elif self.operation == "broadcast":
            dist.broadcast(self.recv, ROOT)
        elif self.operation == "allgather":
            dist.all_gather(self.parts, self.send)
        elif self.operation == "barrier":
            dist.barrier()
        else:
            sent = dist.isend(self.send, (self.rank + 1) % self.ranks)
            dist.recv(self.recv, (self.rank - 1) % self.ranks)
            sent.wait()

    def expected(self):
        dtype = self.recv.dtype
        if self.operation == "broadcast":
            return contribution(ROOT, self.count).to(dtype)
        if self.operation == "allgather":
            return torch.cat([contribution(rank, self.count) for rank in range(self.ranks)]).to(dtype)
        if self.operation == "sendrecv":
            return contribution((self.rank - 1) % self.ranks, self.count).to(dtype)
        return sum(contribution(rank, self.count) for rank in range(self.ranks)).to(dtype)

    def check(self):
        self.run()
        if self.operation == "barrier" or (self.operation == "reduce" and self.rank != ROOT):
            return "ok"
        expected = self.expected()
        wrong = (self.recv != expected).nonzero()
        if self.operation in ("allreduce", "reduce"):
            self.recv.zero_()  # otherwise in-place sums would grow from call to call
        if len(wrong) == 0:
            return "ok"
        at = int(wrong[0])
        return f"wrong rank {self.rank}: element {at} differs, expected {expected[at].item()}"


def measure(call, warmup, samples, iterations):
    for _ in range(warmup):
        call.run()
    times = []
    for _ in range(samples):
        dist.barrier()
        start = time.perf_counter_ns()
        for _ in range(iterations):
            call.run()
        times.append((time.perf_counter_ns() - start) / iterations)
    return "times " + " ".join(f"{value:.2f}" for value in times)


def answer(state, words):
    verb, _, *rest = words  # all buffers are private here
    if verb == "prepare":
        state["call"] = Call(rest[0], rest[1], int(rest[2]))
        return "ok"
    if verb == "check":
        return state["call"].check()
    return measure(state["call"], *map(int, rest))


def main():
    torch.set_num_threads(1)
    start = time.perf_counter()
    dist.init_process_group("gloo", init_method="env://", timeout=datetime.timedelta(seconds=60))
    joining = time.perf_counter() - start
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(sys.argv[1])
    lines = connection.makefile("rw", encoding="utf-8", newline="\n")

    def say(text):
        lines.write(" ".join(text.split()) + "\n")
        lines.flush()

    say(f"hello {dist.get_rank()} {dist.get_world_size()} {joining:.6f} torch {torch.__version__}, its gloo")
    state = {}
    try:
        for line in lines:
            try:
                say(answer(state, line.split()))
            except Unsupported as reason:
                say(f"unsupported {reason}")
            except RuntimeError as failure:
                say(f"error {failure}")
    except (BrokenPipeError, ConnectionResetError):
        pass  # the verb is gone: the run has ended


if __name__ == "__main__":
    main()
