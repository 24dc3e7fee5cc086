"""Prints the libraries' own facts as JSON. A separate process, because it loads them and queries devices.

    probe.py LIBNCCL LIBCUDART    either may be empty"""

import ctypes
import json
import mmap
import sys


def has_text(file, text):
    with open(file, "rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return content.find(text) >= 0


def of_nccl(file):
    library = ctypes.CDLL(file)
    version = ctypes.c_int()
    code = library.ncclGetVersion(ctypes.byref(version))
    number = version.value
    return {"file": file, "code": code, "version": f"{number // 10000}.{number // 100 % 100}.{number % 100}",
            "hostid": has_text(file, b"NCCL_HOSTID\0"), "stands_in": hasattr(library, "dtrun_fake_nccl")}


def of_cuda(file):
    library = ctypes.CDLL(file)
    library.cudaGetErrorString.restype = ctypes.c_char_p
    numbers = {}
    for name in ("cudaRuntimeGetVersion", "cudaDriverGetVersion"):
        value = ctypes.c_int()
        getattr(library, name)(ctypes.byref(value))
        numbers[name] = f"{value.value // 1000}.{value.value % 1000 // 10}"
    count = ctypes.c_int()
    code = library.cudaGetDeviceCount(ctypes.byref(count))
    return {"file": file, "runtime": numbers["cudaRuntimeGetVersion"], "driver": numbers["cudaDriverGetVersion"],
            "devices": count.value if code == 0 else 0, "code": code, "error": library.cudaGetErrorString(code).decode() if code else None}


def main():
    answer = {}
    for name, file, ask in (("nccl", sys.argv[1], of_nccl), ("cuda", sys.argv[2], of_cuda)):
        try:
            answer[name] = ask(file) if file else {"error": "not found on this machine"}
        except (OSError, AttributeError) as error:
            answer[name] = {"error": str(error)}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
