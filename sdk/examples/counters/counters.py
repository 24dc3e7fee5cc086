"""Each rank sends the next one three messages of 1000 bytes, and prints what the transport counted.

    dtrun --plugin-dir out --set backend.name=tcp_c --set comm.local=none -n 2 -- python3 counters.py

`import dtrun` needs PYTHONPATH=PREFIX/lib/python3/dist-packages, unless dtrun is a wheel.
"""

import ctypes
from ctypes import CFUNCTYPE, POINTER, byref, c_int32, c_uint32, c_uint64, c_void_p, sizeof

import dtrun


class Counts(ctypes.Structure):
    """link_counts of counters.h"""

    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("messages_sent", c_uint64), ("bytes_sent", c_uint64),
                ("messages_received", c_uint64), ("bytes_received", c_uint64)]


class Counters(ctypes.Structure):
    """link_counters"""

    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32),
                ("read", CFUNCTYPE(c_int32, c_void_p, POINTER(Counts), c_void_p))]


with dtrun.init() as world:
    found = world.extension("dtrun_examples.counters/1")
    out, received = bytearray(1000), bytearray(1000)
    for _ in range(3):
        with world.group():
            world.send(out, (world.rank + 1) % world.size)
            world.recv(received, (world.rank - 1) % world.size)
    if found.comm is None:
        print(f"rank {world.rank}: another rank speaks for its host")
    else:
        counts = Counts(struct_size=sizeof(Counts))
        if Counters.from_address(found.table).read(found.comm, byref(counts), None):
            raise SystemExit("the counters cannot be read")
        print(f"rank {world.rank} over {found.backend}: sent {counts.messages_sent} messages, {counts.bytes_sent} bytes; "
              f"received {counts.messages_received} messages, {counts.bytes_received} bytes")
