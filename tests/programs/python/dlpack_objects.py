"""A rank: memory of libraries that only export DLPack, in its form of today and in the older one."""

import ctypes

import numpy
from checks import equal, refused

import dtrun
from dtrun.dlpack import _Tensor, _Versioned

_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Older:
    """Exports DLManagedTensor, without arguments."""

    def __init__(self, values):
        self.values = values

    def __dlpack__(self):
        return self.values.__dlpack__()


class Newer:
    """Exports DLManagedTensorVersioned."""

    def __init__(self, values, flags=0, major=1, strides=None, code=2, bits=64):
        self.values = values
        shape = (ctypes.c_int64 * values.ndim)(*values.shape)
        strides = strides and (ctypes.c_int64 * values.ndim)(*strides)
        tensor = _Tensor(values.ctypes.data, 1, 0, values.ndim, code, bits, 1, shape, strides, 0)
        self.exported = _Versioned(major, 0, None, None, flags, tensor)

    def __dlpack__(self, *, max_version=None):
        assert max_version == (1, 0)
        return _new_capsule(ctypes.addressof(self.exported), b"dltensor_versioned", None)


def check(world):
    invalid = dtrun.InvalidArgument
    for kind in (Older, Newer):
        mine = kind(numpy.full((2, 2), world.rank + 1.0))
        assert world.allreduce(mine) is mine
        equal(mine.values, numpy.full((2, 2), sum(range(1, world.size + 1))))
        refused(lambda: world.allgather(mine), "needs the argument recv" if hasattr(mine, "shape") else "has no shape", error=invalid)
    equal(world.allreduce(Newer(numpy.ones((1, 3)), strides=(7, 1))).values, numpy.full((1, 3), world.size))

    total = numpy.zeros(2)
    for flag, text in ((1, "Newer is read-only"), (2, "exports a copy")):
        equal(world.allreduce(Newer(numpy.ones(2), flag), total), [world.size] * 2)
        refused(lambda: world.allreduce(Newer(numpy.ones(2), flag)), text, error=invalid)
    constant = numpy.ones(2)
    constant.flags.writeable = False
    refused(lambda: world.allreduce(Older(constant)), "Older does not export its memory", "pass a copy", error=invalid)
    refused(lambda: world.allreduce(Newer(numpy.ones(2), major=2)), "version 2 of DLPack", error=invalid)
    refused(lambda: world.allreduce(Newer(numpy.ones((2, 2)), strides=(1, 2))), "of shape (2, 2) is not contiguous", error=invalid)
    refused(lambda: world.allreduce(Newer(numpy.ones(2), code=2, bits=128)), "has the type float128", error=invalid)


with dtrun.init() as world:
    check(world)
    world.barrier()
    print(f"rank {world.rank} of {world.size} is done")
