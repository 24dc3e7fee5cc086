"""One trial of torch.distributed, all ranks on device 0 (without a device on the CPU, to test the trial itself):

    torch_trials.py NAME SECONDS

Prints "PASS NAME" on every rank. A hanging trial is ended after SECONDS, with the stack of each thread. BACKEND=nccl
or gloo runs it without dtrun's backend."""

import faulthandler
import os
import sys
import time

faulthandler.dump_traceback_later(float(sys.argv[2]), exit=True)

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

BACKEND = os.environ.get("BACKEND", "dtrun")
CUDA = torch.cuda.is_available()
if not CUDA and os.environ.get("WANTS_CUDA"):
    sys.exit(f"torch {torch.__version__} sees no CUDA device")
DEVICE = torch.device("cuda", 0) if CUDA else torch.device("cpu")
MIB = (1 << 20) // 4  # in floats
SMALL = 1 if CUDA else 8  # reduces sizes on the CPU
CYCLES_OF_MS = 1_700_000


def sleep(milliseconds):
    """A delay on the device, by a kernel."""
    if CUDA:
        torch.cuda._sleep(milliseconds * CYCLES_OF_MS)
    else:
        time.sleep(milliseconds / 1000)


def synchronize():
    if CUDA:
        torch.cuda.synchronize()


def filled(mib, value=1.0):
    return torch.full((max(mib // SMALL, 1) * MIB,), float(value), device=DEVICE)


def expect(x, want):
    synchronize()
    wrong = (x != want).nonzero()
    if len(wrong):
        at = wrong[0].tolist()
        raise AssertionError(f"{len(wrong)} of {x.numel()} elements are not {want}; the first, at {at}, is {x[tuple(at)].item()}")


def first():
    """The group, and one sum."""


def order():
    """A sum uses the data written behind a delaying kernel, and work queued behind the sum uses its result."""
    for mib in (1, 9, 64):
        x = filled(mib, -7)
        synchronize()
        sleep(50)
        x.fill_(rank + 1.0)
        dist.all_reduce(x)
        x.mul_(2)
        expect(x, world * (world + 1.0))


def pieces():
    """Sums and gathers around and far above the size of a staging piece, every element."""
    for count in (1, 4 * MIB - 1, 4 * MIB + 1, 37 * MIB // SMALL + 5):
        own = torch.arange(count, device=DEVICE, dtype=torch.float32) % 97
        x = own.clone()
        dist.all_reduce(x)
        synchronize()
        assert torch.equal(x, own * world), f"all_reduce of {count} floats is wrong"
        every = torch.empty(world * count, device=DEVICE)
        dist.all_gather_into_tensor(every, own + rank)
        synchronize()
        for r in range(world):
            assert torch.equal(every[r * count:(r + 1) * count], own + r), f"all_gather of {count} floats is wrong at rank {r}"


def streams():
    """Sums on more streams than there are hardware queues."""
    made = [torch.cuda.Stream() if CUDA else None for _ in range(64 if CUDA else 4)]
    sums = []
    for stream in made:
        with torch.cuda.stream(stream) if CUDA else torch.no_grad():
            sleep(1)
            x = filled(8)
            dist.all_reduce(x)
            sums.append(x)
    for x in sums:
        expect(x, world)


def messages():
    """Many large messages in flight, so that staging runs out of pieces."""
    if world != 2:
        return
    sent = [filled(12, rank * 1000 + i if rank == 0 else -7) for i in range(24)]
    works = [(dist.isend if rank == 0 else dist.irecv)(x, 1 - rank) for x in sent]
    for work in works:
        work.wait()
    for i, x in enumerate(sent):
        expect(x, i)


def notready():
    """is_completed leaves no error behind that a later CUDA call would report."""
    x = filled(16)
    sleep(100)
    work = dist.all_reduce(x, async_op=True)
    work.is_completed()
    y = torch.ones(8, device=DEVICE) + 1
    work.wait()
    expect(x, world)
    expect(y, 2.0)


def beside(call):
    """A CUDA call on this thread during a sum must not wait for the other half of that sum."""
    for _ in range(5):
        x = filled(64)
        work = dist.all_reduce(x, async_op=True)
        call()
        work.wait()
        expect(x, world)


def free():
    beside(lambda: (torch.empty(256 * MIB // SMALL, device=DEVICE), torch.cuda.empty_cache() if CUDA else None))


def malloc():
    beside(lambda: torch.empty(300 * MIB // SMALL + time.time_ns() % 1000, device=DEVICE))


def pin():
    beside(lambda: torch.empty(64 * MIB // SMALL, pin_memory=CUDA))


def sync():
    beside(synchronize)


def lazy():
    """Kernels and libraries that CUDA loads on first use."""
    beside(lambda: (torch.linalg.svdvals(torch.randn(8, 8, device=DEVICE)), torch.fft.fft(torch.randn(64, device=DEVICE))))


def graph():
    """A sum in a graph that torch captures, in each mode."""
    if not CUDA:
        return
    stream = torch.cuda.Stream()
    x = filled(1)
    with torch.cuda.stream(stream):
        dist.all_reduce(x)
    synchronize()
    for mode in ("global", "thread_local", "relaxed"):
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured, stream=stream, capture_error_mode=mode):
            dist.all_reduce(x)
        x.fill_(1)
        synchronize()
        captured.replay()
        captured.replay()
        expect(x, float(world * world))
        print(f"captured in mode {mode}", flush=True)


TRIALS = (first, order, pieces, streams, messages, notready, free, malloc, pin, sync, lazy, graph)

if __name__ == "__main__":
    if CUDA:
        torch.cuda.set_device(0)
    if BACKEND == "dtrun":
        import dtrun.torch  # noqa: F401
    start = time.monotonic()
    dist.init_process_group(BACKEND)
    rank, world = dist.get_rank(), dist.get_world_size()
    connecting = filled(1)
    dist.all_reduce(connecting)  # connects the ranks
    expect(connecting, world)
    connected = time.monotonic()
    {trial.__name__: trial for trial in TRIALS}[sys.argv[1]]()
    synchronize()
    print(f"PASS {sys.argv[1]} on {DEVICE}: {connected - start:.2f} s to connect, {time.monotonic() - connected:.2f} s", flush=True)
    dist.destroy_process_group()
