"""What the programs of this folder check with."""


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
