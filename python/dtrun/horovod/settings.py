"""Horovod's environment variables that have a meaning here."""

import os
from typing import NamedTuple


class Settings(NamedTuple):
    """Read once, by init()."""

    fusion_bytes: int  # HOROVOD_FUSION_THRESHOLD
    cycle_s: float  # HOROVOD_CYCLE_TIME, in milliseconds
    cache_entries: int  # HOROVOD_CACHE_CAPACITY
    stall_warning_s: float  # HOROVOD_STALL_CHECK_TIME_SECONDS; 0: never (HOROVOD_STALL_CHECK_DISABLE=1)
    stall_shutdown_s: float  # HOROVOD_STALL_SHUTDOWN_TIME_SECONDS; 0: never


def read() -> Settings:
    off = os.environ.get("HOROVOD_STALL_CHECK_DISABLE", "0") not in ("", "0")
    return Settings(
        fusion_bytes=int(_number("HOROVOD_FUSION_THRESHOLD", 128 * 1024 * 1024)),
        cycle_s=_number("HOROVOD_CYCLE_TIME", 1.0) / 1000,
        cache_entries=int(_number("HOROVOD_CACHE_CAPACITY", 1024)),
        stall_warning_s=0.0 if off else _number("HOROVOD_STALL_CHECK_TIME_SECONDS", 60.0),
        stall_shutdown_s=0.0 if off else _number("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", 0.0),
    )


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
