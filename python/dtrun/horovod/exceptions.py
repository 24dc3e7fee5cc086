"""Errors of Horovod's API, under Horovod's names."""


class HorovodInternalError(RuntimeError):
    """An operation failed: ranks did not agree on it, or a rank left."""


class HostsUpdatedInterrupt(RuntimeError):
    """The hosts of the job changed. dtrun restarts the ranks instead, and never raises it; scripts may catch it."""

    def __init__(self, skip_sync: bool = False) -> None:
        super().__init__("the hosts of the job changed")
        self.skip_sync = skip_sync
