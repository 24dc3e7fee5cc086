"""What torch's own flight recorder knows about this rank, for the agent of dtrun on this host.

torch calls dtrun.torch:_autoload at the end of its import, and that start(). From its first process group on, a thread of the rank listens
on the socket `torch.<pid>` in the job's private folder on this host, and answers each connection with one JSON object: the collective that
is under way, else the last one (core/node/torch_recorder.h). It asks torch only then. The agent connects for `dtrun explain`, `stacks`
and the line about a stall (core/node/torch_recorder.h).

torch records collectives of gloo and NCCL, no send and no recv of gloo. The backend "dtrun" has dtrun's own recorder.
"""

from __future__ import annotations

import _thread
import json
import os
import signal
import socket
from typing import Any, Callable, Optional

from torch._C import _distributed_c10d
from torch.distributed import distributed_c10d as c10d

from .patches import replace

# Collectives for which torch requires equal types and sizes on all ranks.
ALIKE = frozenset(["all_reduce", "broadcast", "reduce", "all_gather", "_all_gather_base", "reduce_scatter", "_reduce_scatter_base"])

Dump = Callable[[bool, bool], bytes]
_listener_of = 0  # the process that has one; a fork has none


def start() -> None:
    """Does nothing outside of dtrun's jobs, and where torch has no recorder (before 2.5)."""
    dump: Optional[Dump] = getattr(_distributed_c10d, "_dump_fr_trace_json", None)
    if dump is None or not os.environ.get("DTRUN_STORE") or not hasattr(c10d, "_new_process_group_helper"):
        return
    asked = dump

    def listens_first(make: Any) -> Any:
        def make_listening(*given: Any, **named: Any) -> Any:
            _listen(asked)
            return make(*given, **named)

        return make_listening

    replace(c10d, "_new_process_group_helper", listens_first)


def _listen(dump: Dump) -> None:
    global _listener_of
    if _listener_of == os.getpid():
        return
    _listener_of = os.getpid()
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(os.path.join(os.path.dirname(os.environ["DTRUN_STORE"]), f"torch.{os.getpid()}"))
    except (OSError, KeyError):  # the folder is not this process's, as in a container: the rank has no recorder to offer
        listener.close()
        return
    listener.listen()
    # The script's signals are for its own threads. Not of `threading`: a script that counts its threads counts none of dtrun's.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        _thread.start_new_thread(_serve, (listener, dump))
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(listener: socket.socket, dump: Dump) -> None:
    while True:
        asker, _ = listener.accept()
        with asker:
            try:
                call = call_of(dump)
            except (KeyError, TypeError, ValueError):  # another torch's recorder: the agent learns of no call
                call = None
            try:
                asker.sendall(json.dumps(call).encode())
            except OSError:  # it no longer waits
                pass


def call_of(dump: Dump) -> Optional[dict[str, Any]]:
    """The oldest collective under way, else the last one; None: there was none."""
    entries: list[dict[str, Any]] = json.loads(dump(True, False)).get("entries", [])  # oldest first
    collectives = [entry for entry in entries if not entry["is_p2p"]]
    for entry in collectives:
        if not entry["retired"]:
            # Coalesced calls have one number, and ranks may be at different ones of them.
            alone = sum(_same(entry, other) for other in collectives) == 1
            return _under_way(entry, alone)
    if not collectives:
        return None
    last = collectives[-1]
    return {"under_way": False, "message": False, "polled": False, "group": _group(last), "number": last["collective_seq_id"], "name": "",
            "details": "", "signature": "", "members": []}


def _same(entry: dict[str, Any], other: dict[str, Any]) -> bool:
    return bool(entry["process_group"] == other["process_group"] and entry["collective_seq_id"] == other["collective_seq_id"])


def _under_way(entry: dict[str, Any], alone: bool) -> dict[str, Any]:
    name = entry["profiling_name"].split(":", 1)[-1]
    types, sizes = entry["input_dtypes"], entry["input_sizes"]
    details = "({})".format(", ".join(f"{kind.lower()} {size}" for kind, size in zip(types, sizes))) if sizes else ""
    compared = f"{name} {details}".rstrip() if name in ALIKE else name
    return {"under_way": True, "message": False, "polled": False, "group": _group(entry), "number": entry["collective_seq_id"],
            "name": name, "details": details, "signature": compared if alone else "", "members": _members(entry)}


def _members(entry: dict[str, Any]) -> list[int]:
    """Ranks of the world; empty: the group is not known."""
    name = entry["process_group"][0]
    for group, named in list(c10d._world.pg_names.items()):
        if str(named) == str(name):
            return sorted(c10d._world.pg_group_ranks.get(group, {}))
    return []


def _group(entry: dict[str, Any]) -> str:
    """The group's description where the script gave one; with its name, as several groups may have one description."""
    name, description = entry["process_group"]
    if description == "default_pg":
        return str(description)
    return f"group {name}" if description in ("", "undefined") else f"{description}, group {name}"
