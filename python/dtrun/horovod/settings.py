"""The environment variables of Horovod that are supported."""

import os
from typing import NamedTuple


class Settings(NamedTuple):
    """Read once, by init()."""

    fusion_bytes: int  # HOROVOD_FUSION_THRESHOLD
    cycle_s: float  # HOROVOD_CYCLE_TIME, in milliseconds
    cache_entries: int  # HOROVOD_CACHE_CAPACITY
    stall_warning_s: float  # HOROVOD_STALL_CHECK_TIME_SECONDS; 0: never (HOROVOD_STALL_CHECK_DISABLE=1)
    stall_shutdown_s: float  # HOROVOD_STALL_SHUTDOWN_TIME_SECONDS; 0: never
    timeline: str  # HOROVOD_TIMELINE, a file; empty: none, or when the program says so ("DYNAMIC")
    timeline_cycles: bool  # HOROVOD_TIMELINE_MARK_CYCLES


def read() -> Settings:
    off = _flag("HOROVOD_STALL_CHECK_DISABLE")
    timeline = os.environ.get("HOROVOD_TIMELINE", "")
    return Settings(
        fusion_bytes=int(_number("HOROVOD_FUSION_THRESHOLD", 128 * 1024 * 1024)),
        cycle_s=_number("HOROVOD_CYCLE_TIME", 1.0) / 1000,
        cache_entries=int(_number("HOROVOD_CACHE_CAPACITY", 1024)),
        stall_warning_s=0.0 if off else _number("HOROVOD_STALL_CHECK_TIME_SECONDS", 60.0),
        stall_shutdown_s=0.0 if off else _number("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", 0.0),
        timeline="" if timeline == "DYNAMIC" else timeline,
        timeline_cycles=_flag("HOROVOD_TIMELINE_MARK_CYCLES"),
    )


def _flag(name: str) -> bool:
    return os.environ.get(name, "0") not in ("", "0")


def _number(name: str, default: float) -> float:
    text = os.environ.get(name)
    if text is None or text == "":
        return default
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if value < 0:
        raise ValueError(f"dtrun: {name}: '{text}' is not a number from 0 on; unset it to get {default:g}")
    return value
