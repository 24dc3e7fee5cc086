"""Timeline: a trace of rank 0's operations and their negotiation, for chrome://tracing or Perfetto.

One row for each name. NEGOTIATE_ALLREDUCE is the time from the first rank's announcement to the last one's, ALLREDUCE the
time of the operation; fused small allreduces have the same time. The file is complete after stop().
"""

import json
import threading
import time
from typing import Dict, Iterable, Optional, TextIO

from .negotiation import Decision


class Timeline:
    """The timeline of this process. Any thread may call it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._file: Optional[TextIO] = None
        self._rows: Dict[str, int] = {}
        self._cycles = False

    def start(self, path: str, mark_cycles: bool) -> None:
        """Begins a new file; completes the current one first."""
        self.stop()
        with self._lock:
            self._file = open(path, "w", encoding="utf-8")
            self._rows, self._cycles = {}, mark_cycles
            self._file.write('[\n{"name": "process_name", "ph": "M", "pid": 0, "args": {"name": "hvd"}}')

    def stop(self) -> None:
        with self._lock:
            if self._file is not None:
                self._file.write("\n]\n")
                self._file.close()
                self._file = None

    def ran(self, decisions: Iterable[Decision], begin: float) -> None:
        """These ran together, from `begin` (time.monotonic()) to now."""
        if self._file is None:
            return
        end = time.monotonic()
        with self._lock:
            for decision in decisions:
                kind = decision.signature.kind.upper()
                self._write(decision.name, f"NEGOTIATE_{kind}", decision.since, begin)
                self._write(decision.name, kind, begin, end)

    def cycle(self) -> None:
        """A round of announcements begins."""
        if self._cycles and self._file is not None:
            with self._lock:
                now = time.monotonic()
                self._write("cycles", "CYCLE_START", now, now)

    def _write(self, name: str, what: str, begin: float, end: float) -> None:
        if self._file is None:  # stopped meanwhile
            return
        row = self._rows.get(name)
        if row is None:
            row = self._rows[name] = len(self._rows)
            self._put({"name": "thread_name", "ph": "M", "pid": 0, "tid": row, "args": {"name": name}})
        self._put(
            {"name": what, "ph": "X", "pid": 0, "tid": row, "ts": int(begin * 1e6), "dur": int((end - begin) * 1e6)}
        )

    def _put(self, event: Dict[str, object]) -> None:
        assert self._file is not None
        self._file.write(",\n" + json.dumps(event))


timeline = Timeline()
