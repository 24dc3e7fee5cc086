"""What Horovod's faces for all frameworks have in common, on arrays of numpy."""

from support.horovod import HorovodTest, python_with
from support.job import main, skip

PYTHON = python_with("numpy", "DTRUN_TEST_NUMPY")


class HorovodArrays(HorovodTest):
    PYTHON = PYTHON

    def test_operations(self):
        for count in (1, 2, 3, 4):
            self.hold(count, "arrays.py")


if __name__ == "__main__":
    if PYTHON is None:
        skip("no Python with numpy was found: install python3-numpy, or set DTRUN_TEST_NUMPY")
    main()
