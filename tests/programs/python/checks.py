"""What the programs of this folder check with."""

import linecache
import sys
import time


def refused(call, *texts, error):
    """`call` raises `error` with every text in its message."""
    try:
        call()
    except error as raised:
        for text in texts:
            assert text in str(raised), f"'{text}' is not in: {raised}"
        return raised
    raise AssertionError(f"nothing was raised instead of {error.__name__} with {texts}")


def equal(got, expected):
    import numpy

    numpy.testing.assert_array_equal(got, expected)


def stand_inside(thread):
    """Waits until `thread` is inside a call of libdtrun and does not come back from it."""

    def place():
        frame = sys._current_frames().get(thread.ident)
        inside = frame and ".dtrun_" in linecache.getline(frame.f_code.co_filename, frame.f_lineno)
        return (frame, frame.f_lasti) if inside else None

    while True:
        before = place()
        time.sleep(0.05)
        if before and before == place():
            return
