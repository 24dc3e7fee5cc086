"""Request: an operation that this rank has submitted; a handle in hvd."""

import threading
from typing import Any, List, Optional

from .exceptions import HorovodInternalError
from .signature import Signature


class Request:
    """Made by the framework's layer; the controller ends it. Its tensors belong to it until then."""

    def __init__(self, signature: Signature, inputs: List[Any], outputs: List[Any], ready: Any = None) -> None:
        self.signature = signature
        self.inputs = inputs
        self.outputs = outputs
        self.ready = ready  # work on the framework's device that must end first
        self.result: Any = None
        self._error: Optional[str] = None
        self._over = threading.Event()

    def end(self, result: Any = None) -> None:
        self.result = result
        self._over.set()

    def fail(self, error: str) -> None:
        self._error = error
        self._over.set()

    def done(self) -> bool:
        """Whether it has ended, without blocking."""
        return self._over.is_set()

    def wait(self) -> Any:
        """Its result, once it has one. Raises HorovodInternalError if it failed."""
        self._over.wait()
        if self._error is not None:
            raise HorovodInternalError(self._error)
        return self.result

    def __repr__(self) -> str:
        return f"<{self.signature.called}: {'done' if self.done() else 'running'}>"
