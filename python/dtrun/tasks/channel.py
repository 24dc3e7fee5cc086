"""The connection from tasks to the driver: lines that ranks print, and the cause of a failed job.

The driver listens. A task proves that it has the job's key (HMAC-SHA256 over the driver's nonce), then sends frames: one byte
for the kind, four for the length, the text. Nothing is unpickled.
"""

from __future__ import annotations

import hmac
import json
import secrets
import selectors
import socket
import struct
import sys
import threading
import time

NONCE, PROOF = 32, 32
HEAD = struct.Struct("!cI")
LONGEST = 64 << 20  # of a frame
LAST_WORDS_S = 10  # time for ended tasks to send their last output
STREAMS = {b"o": "stdout", b"e": "stderr"}


class Speaker:
    """The task's end of the connection."""

    def __init__(self, address: tuple, key: bytes) -> None:
        self.socket = socket.create_connection(address)
        nonce = b""
        while len(nonce) < NONCE:
            part = self.socket.recv(NONCE - len(nonce))
            if not part:
                raise ConnectionError(f"dtrun: the driver at {address[0]}:{address[1]} has closed the connection")
            nonce += part
        self.socket.sendall(hmac.digest(key, nonce, "sha256"))

    def close(self) -> None:
        self.socket.close()

    def send(self, kind: bytes, text: str) -> None:
        data = text.encode(errors="replace")
        self.socket.sendall(HEAD.pack(kind, len(data)) + data)

    def stream(self, kind: bytes) -> _Stream:
        return _Stream(self, kind)


class _Stream:
    """A task's sys.stdout or sys.stderr; the driver prints each piece."""

    def __init__(self, speaker: Speaker, kind: bytes) -> None:
        self.speaker, self.kind = speaker, kind

    def write(self, text: str) -> None:
        if text:
            self.speaker.send(self.kind, text)

    def flush(self) -> None:
        pass


class Listener:
    """The driver's end, with its own thread: prints the output of ranks and collects `failures`."""

    def __init__(self, key: bytes) -> None:
        self.key, self.failures = key, []
        self.unshown = None  # the error that stopped the output
        self.socket = socket.create_server(("", 0), backlog=128)
        self.port = self.socket.getsockname()[1]
        self._ended, self._end = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        for one in (self.socket, self._ended):
            one.setblocking(False)
            self._selector.register(one, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._listen, name="dtrun.driver", daemon=True)

    def __enter__(self) -> Listener:
        self._thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """Reads the remaining connections to their end. Raises the error that stopped the output, if any."""
        self._end.close()
        self._thread.join()
        if self.unshown and kind is None:
            raise self.unshown

    def _listen(self) -> None:
        deadline = None
        while deadline is None or (time.monotonic() < deadline and self._talking()):
            for key, _ in self._selector.select(None if deadline is None else 0.1):
                if key.fileobj is self._ended:
                    self._selector.unregister(self._ended)
                    deadline = time.monotonic() + LAST_WORDS_S
                elif key.fileobj is self.socket:
                    self._accept()
                elif not key.data.hear(key.fileobj):
                    self._selector.unregister(key.fileobj)
                    key.fileobj.close()
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()
        self._selector.close()
        self._ended.close()

    def _talking(self) -> bool:
        return any(key.data and key.data.known for key in self._selector.get_map().values())

    def _accept(self) -> None:
        hearing = _Hearing(self)
        try:
            peer, _ = self.socket.accept()
            peer.setblocking(False)
            peer.send(hearing.nonce)
        except OSError:  # gone again: tasks report that themselves
            return
        self._selector.register(peer, selectors.EVENT_READ, hearing)

    def take(self, kind: bytes, text: str) -> None:
        if kind == b"f":
            self.failures.append(json.loads(text))
            return
        if self.unshown:
            return  # but continues to read, so that no rank blocks
        try:
            stream = getattr(sys, STREAMS[kind])
            stream.write(text)
            stream.flush()
        except Exception as failure:
            self.unshown = failure


class _Hearing:
    """One connection at the driver: unknown until it has proven the key."""

    def __init__(self, listener: Listener) -> None:
        self.listener, self.nonce, self.known, self.data = listener, secrets.token_bytes(NONCE), False, b""

    def hear(self, peer: socket.socket) -> bool:
        """Returns False to close this connection."""
        try:
            data = peer.recv(1 << 16)
        except OSError:  # reset: that task's end
            return False
        self.data += data
        if not self.known:
            if len(self.data) >= PROOF:
                proof, self.data = self.data[:PROOF], self.data[PROOF:]
                self.known = hmac.compare_digest(proof, hmac.digest(self.listener.key, self.nonce, "sha256"))
                if not self.known:
                    return False
        while self.known and len(self.data) >= HEAD.size:
            kind, length = HEAD.unpack_from(self.data)
            if (kind != b"f" and kind not in STREAMS) or length > LONGEST:
                return False
            if len(self.data) < HEAD.size + length:
                break
            text = self.data[HEAD.size : HEAD.size + length].decode(errors="replace")
            self.data = self.data[HEAD.size + length :]
            self.listener.take(kind, text)
        return bool(data)
