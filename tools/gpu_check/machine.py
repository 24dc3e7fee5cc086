"""Detects Python and torch, NCCL, the CUDA runtime, compilers and glibc, without loading them into this process."""

import glob
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

PYTHON = sys.executable or os.readlink("/proc/self/exe")  # knows its own path, even if PATH does not
TORCH = ("import importlib.util, json, sys; spec = importlib.util.find_spec('torch'); "
         "print(json.dumps({'python': sys.executable, 'version': sys.version.split()[0], 'path': sys.path, "
         "'torch': spec and spec.origin}))")


def output_of(words):
    try:
        return subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=20, check=False).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def first_line(words):
    lines = output_of(words).strip().splitlines()
    return lines[0] if lines else None


def pythons():
    """The interpreters of this machine, starting with this program's own."""
    seen = []
    for name in (PYTHON, shutil.which("python3"), "/usr/bin/python3"):
        if name and os.path.exists(name) and os.path.realpath(name) not in map(os.path.realpath, seen):
            seen.append(name)
    return seen


def find_python():
    """The path of the first interpreter with torch (else of the first), and torch's folder and version."""
    found = []
    for python in pythons():
        try:
            found.append(json.loads(output_of([python, "-c", TORCH])))
        except ValueError:
            continue
        if found[-1]["torch"]:
            break
    if not found:
        return {"python": PYTHON, "version": platform.python_version(), "path": sys.path, "torch": None}
    best = found[-1] if found[-1]["torch"] else found[0]
    if best["torch"]:
        folder = Path(best["torch"]).parent
        text = (folder / "version.py").read_text() if (folder / "version.py").exists() else ""
        version = re.search(r"__version__ = '([^']+)'", text)
        best.update(torch=str(folder), torch_version=version[1] if version else "unknown")
    return best


def find_library(name, python, first=()):
    """The folder and file of a library: searches given folders, Python's packages, CUDA's, then the loader's."""
    folders = [*first]
    for entry in python["path"]:
        if entry:
            folders += sorted(glob.glob(f"{entry}/nvidia/*/lib")) + [f"{entry}/torch/lib"]
    folders += [folder for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder]
    folders += sorted(glob.glob("/usr/local/cuda*/lib64")) + sorted(glob.glob("/usr/local/cuda*/targets/*/lib"))
    for folder in folders:
        if os.path.exists(f"{folder}/{name}"):
            return f"{folder}/{name}"
    for line in (output_of(["ldconfig", "-p"]) or output_of(["/sbin/ldconfig", "-p"])).splitlines():
        words = line.split()
        if words[:1] == [name] and "x86-64" in line:
            return words[-1]
    return None


def driver_folder():
    """The folder of the CUDA driver if a container mounts it where the loader does not search; else None."""
    if find_library("libcuda.so.1", {"path": []}):
        return None
    return next((folder for folder in ("/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", "/usr/lib/wsl/lib",
                                       "/run/nvidia/driver/usr/lib/x86_64-linux-gnu") if os.path.exists(f"{folder}/libcuda.so.1")), None)


def find_program(name):
    for folder in (*os.environ.get("PATH", "").split(":"), *sorted(glob.glob("/usr/local/cuda*/bin"), reverse=True),
                   *sorted(glob.glob("/opt/nvidia/*/bin")), "/usr/sbin", "/sbin"):
        if folder and os.access(f"{folder}/{name}", os.X_OK):
            return f"{folder}/{name}"
    return None


def cuda_headers(python):
    """The folders of CUDA's headers: from one toolkit, else from Python's packages."""
    for folder in sorted(glob.glob("/usr/local/cuda*/include")):
        if os.path.exists(f"{folder}/crt/host_defines.h"):
            return [folder, *(found for found in (f"{folder}/cccl",) if os.path.isdir(found))]
    return [folder for entry in python["path"] if entry for folder in sorted(glob.glob(f"{entry}/nvidia/*/include"))]


def newest(file, prefix):
    """The newest version symbol of a library: (3, 4, 30) for libstdc++ and GLIBCXX."""
    try:
        found = re.findall(prefix.encode() + rb"_(\d+(?:\.\d+)+)\x00", Path(file).read_bytes())
    except OSError:
        return ()
    return max((tuple(map(int, text.split(b"."))) for text in found), default=())


def glibc():
    try:
        return tuple(map(int, os.confstr("CS_GNU_LIBC_VERSION").split()[-1].split(".")))
    except (ValueError, AttributeError, OSError):
        return ()


def describe(libraries=()):
    python = find_python()
    first = [str(folder) for folder in libraries]
    cudart = next((found for found in (find_library(f"libcudart.so.{version}", python, first) for version in ("13", "12", "11.0")) if found), None)
    return {
        "host": platform.node(), "kernel": platform.release(), "processors": len(os.sched_getaffinity(0)),
        "glibc": ".".join(map(str, glibc())), "python": python["python"], "python_version": python["version"],
        "torch": python.get("torch"), "torch_version": python.get("torch_version"),
        "nccl": find_library("libnccl.so.2", python, first), "cudart": cudart,
        "libstdc++": find_library("libstdc++.so.6", {"path": []}),
        "driver_folder": driver_folder(), "cuda_headers": cuda_headers(python), "compute-sanitizer": find_program("compute-sanitizer"),
        "g++": first_line(["g++", "--version"]), "nvcc": (output_of(["nvcc", "--version"]).strip().splitlines() or [None])[-1],
        "driver": first_line(["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]),
    }
