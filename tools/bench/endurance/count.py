"""Counts what a job leaves behind or lets grow, from outside: processes, zombies, descriptors, mappings, memory,
segments, control groups."""

import contextlib
import ctypes
import dataclasses
import os
from pathlib import Path

SEGMENTS_BEFORE = set(os.listdir("/dev/shm"))


def pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def processes_with(mark):
    """Pids of live processes with `mark` in their environment."""
    found = []
    for pid in pids():
        with contextlib.suppress(OSError):
            if mark.encode() in Path(f"/proc/{pid}/environ").read_bytes():
                found.append(pid)
    return found


def command_of(pid):
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""


def state_and_parent(pid):
    with contextlib.suppress(OSError):
        text = Path(f"/proc/{pid}/stat").read_text()
        state, parent = text[text.rindex(")") + 2:].split()[:2]
        return state, int(parent)
    return "", 0


def children_of(parent):
    return [pid for pid in pids() for state, above in [state_and_parent(pid)] if above == parent and state != "Z"]


def zombies_of(parents):
    """Pids of ended processes that one of `parents` has not reaped."""
    return [pid for pid in pids() for state, parent in [state_and_parent(pid)] if state == "Z" and parent in parents]


def segments():
    return [f"segment /dev/shm/{name}" for name in sorted(set(os.listdir("/dev/shm")) - SEGMENTS_BEFORE)]


def own_shared_memory():
    """Gives this process and its children a private /dev/shm, so that only their segments are counted (root)."""
    libc = ctypes.CDLL(None, use_errno=True)
    new_mount_namespace, private_recursive = 0x00020000, (1 << 18) | (1 << 14)
    if libc.unshare(new_mount_namespace) or libc.mount(b"none", b"/", None, private_recursive, None) \
            or libc.mount(b"soak", b"/dev/shm", b"tmpfs", 0, None):
        raise OSError(ctypes.get_errno(), "cannot mount a /dev/shm of its own")
    SEGMENTS_BEFORE.clear()


def control_groups(names):
    """Control groups with these names, which match the job's socket folders."""
    # os.walk goes on when a group of another job disappears under it.
    return [f"control group {folder}/{name}" for folder, below, _ in os.walk("/sys/fs/cgroup") for name in below if name in names]


@dataclasses.dataclass
class Holding:
    """The resources of one process."""
    descriptors: int
    mappings: int
    memory_kib: int  # private and anonymous

    @classmethod
    def of(cls, pid):
        """None if the process has ended."""
        with contextlib.suppress(OSError):
            status = Path(f"/proc/{pid}/status").read_text()
            memory = next((line for line in status.splitlines() if line.startswith("RssAnon:")), None)
            if memory:
                return cls(len(os.listdir(f"/proc/{pid}/fd")),
                           Path(f"/proc/{pid}/maps").read_text().count("\n"), int(memory.split()[1]))
        return None

    def growth(self, before):
        return (f"{self.descriptors - before.descriptors:+} descriptors, {self.mappings - before.mappings:+} mappings, "
                f"{self.memory_kib - before.memory_kib:+} KiB")
