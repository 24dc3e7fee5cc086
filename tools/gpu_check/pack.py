"""Makes a pack of dtrun for GPU machines without dtrun: tools/gpu-check pack OUT.tar.gz"""

import argparse
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

import machine
from steps import STEPS

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
LIMIT = 64 << 20
COMPONENTS = ("runtime", "nccl", "ucx", "sdk", "python")
# Parts of an installation that no GPU machine needs.
UNWANTED = ("share/[!d]*", "share/doc", "share/dtrun/[!f]*", "lib/cmake", "lib/pkgconfig", "lib/*.a", "lib/dtrun/bench", "lib/dtrun/dtrun-pmix", "bin/dtrun-train",
            "bin/dtrun-bench", "lib/dtrun/plugins/libdtrun_backend_mpi.so", "include/dtrun/dtrun_abi.rs")
PROGRAMS = ("device_program", "beside_nccl", "nccl_library_test", "nccl_device_test")
WANTED_PROGRAMS = PROGRAMS[:2]
GLIBC = re.compile(r"^(ld-linux|lib(c|m|pthread|dl|rt|resolv|util|anl|nss_\w+)\.so)")
GCC = re.compile(r"^lib(stdc\+\+|gcc_s)\.so")
MODULES = ("archive", "benches", "check", "machine", "own_loader", "probe", "processes", "registry", "report", "steps", "torch_ddp", "torch_steps",
           "torch_trials", "training")
HEADERS_CHECKED = ("plugins/nccl/testing/abi_test.cc", "plugins/nccl/nccl_abi.h", "plugins/cuda/cuda_abi.h")
COMMAND_S = 530  # of the ten minutes per command in ./run
README = """dtrun's check of a machine with a GPU. On it, in this folder:

    ./run

It needs python3, installs nothing, takes at most 9 minutes and leaves no process. Results: gpu-check-results/report.txt, report.json and
the output of every command. gpu-check-results.tar.gz holds all of them and is renewed after each step. ./run --help explains the options;
docs/devices.md of dtrun lists the steps.

On a machine that is lent for 30 minutes, with 10 minutes per command, and taken back when idle: start each command right after the
one before, and read the results later.

    minute  1:   python3 -m tarfile -e gpu-check.tar.gz /tmp/check && cd /tmp/check/gpu-check && python3 run --archive WHAT-COMES-BACK.tar.gz
    minute 11:   cd /tmp/check/gpu-check && python3 run --resume --archive WHAT-COMES-BACK.tar.gz
    minute 20:   the same again; then what failed, with --only NAME and the variables that it needs

If nothing hangs, the first command runs all steps. A step starts only if its whole time limit is left, and is skipped if a step that it
needs has failed. The worst case is:

"""


class Problem(Exception):
    pass


def run(words, what, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, errors="replace", check=False, **more)
    if done.returncode != 0:
        raise Problem(f"{what}: {(done.stderr or done.stdout).strip().splitlines()[-1:] or ['no text']}")
    return done.stdout


def is_elf(file):
    if file.is_symlink() or not file.is_file():
        return False
    with open(file, "rb") as opened:
        return opened.read(4) == b"\x7fELF"


def elf_files(folder):
    return [file for file in sorted(folder.rglob("*")) if is_elf(file)]


def install(build, prefix):
    text = (build / "cmake_install.cmake")
    if not text.exists():
        raise Problem(f"'{build}' is no build of dtrun; build it, or name one with --build")
    for component in COMPONENTS:
        run(["cmake", "--install", build, "--prefix", prefix, "--strip", "--component", component], f"cmake --install {component}")
    for pattern in UNWANTED:
        for found in prefix.glob(pattern):
            shutil.rmtree(found) if found.is_dir() and not found.is_symlink() else found.unlink()
    for name in ("bin/dtrun", "bin/dtrun-conformance", "lib/libdtrun.so.1", "lib/dtrun/plugins/libdtrun_backend_nccl.so",
                 "lib/dtrun/plugins/libdtrun_device_cuda.so"):
        if not (prefix / name).exists():
            raise Problem(f"the build has no {name}; build everything first")


def copy_programs(build, folder):
    folder.mkdir()
    for name in PROGRAMS:
        file = build / "tests" / name
        if file.exists():
            shutil.copy(file, folder / name)
            run(["strip", folder / name], f"strip {name}")
        elif name in WANTED_PROGRAMS:
            raise Problem(f"the build has no tests/{name}; configure with -DDTRUN_TESTS=ON and build it")


def libraries_of(file, folders):
    environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(map(str, folders))}
    found = {}
    for line in run(["ldd", file], f"ldd {file.name}", env=environment).splitlines():
        match = re.match(r"\s*(\S+) => (\S+) \(|\s*(/\S+) \(", line)
        if " not found" in line:
            raise Problem(f"{file.name} needs {line.split()[0]}, which is not here")
        if match:
            path = Path(match[2] or match[3])
            found[Path(match[1] or match[3]).name] = path
    return found


def copy_libraries(stage):
    """The system libraries that dtrun's files need, with glibc's and gcc's separate from the rest."""
    for name in ("deps", "glibc", "gcc"):
        (stage / name).mkdir()
    files = elf_files(stage / "prefix") + elf_files(stage / "programs")
    if (stage / "prefix/lib/dtrun/plugins/libdtrun_backend_ucx.so").exists():  # it loads UCX with dlopen
        files += [Path(found) for found in (machine.find_library(f"lib{name}.so.0", {"path": []}) for name in ("ucp", "uct", "ucs", "ucm")) if found]
    own = [stage / "prefix/lib", stage / "prefix/lib/dtrun/plugins"]
    for file in files:
        found = {file.name: file} if stage not in file.parents else {}
        for name, path in {**found, **libraries_of(file, own)}.items():
            if stage in path.parents or name.startswith("linux-vdso"):
                continue
            folder = stage / ("glibc" if GLIBC.match(name) else "gcc" if GCC.match(name) else "deps")
            if not (folder / name).exists():
                shutil.copy(path.resolve(), folder / name)
    # Direct dependencies of dtrun's programs are found beside libdtrun; the rest by LD_LIBRARY_PATH.
    for file in sorted((stage / "deps").iterdir()):
        (stage / "prefix/lib" / file.name).symlink_to(Path("../../deps") / file.name)


def copy_sources(stage):
    """The sources compiled against the other machine's torch, and the headers from this machine that they need."""
    source = stage / "source"
    (source / "dtrun-train").mkdir(parents=True)
    for name in ("main.cc", "trainer.h"):
        shutil.copy(SOURCE / "tools/dtrun-train" / name, source / "dtrun-train" / name)
    for name in ("CLI", "fmt"):
        found = next((Path(folder) / name for folder in ("/usr/include", "/usr/local/include") if (Path(folder) / name).is_dir()), None)
        if found is None:
            raise Problem(f"there are no headers '{name}'; tools/setup lists the packages")
        shutil.copytree(found, source / "include" / name)
    for name in ("zlib.h", "zconf.h"):
        found = next((file for folder in ("/usr/include", "/usr/include/x86_64-linux-gnu") if (file := Path(folder) / name).exists()), None)
        if found is None:
            raise Problem(f"there is no {name}; tools/setup lists the packages")
        shutil.copy(found, source / "include" / name)
    for name in HEADERS_CHECKED:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(SOURCE / name, source / name)
    zlib = machine.find_library("libz.so.1", {"path": []})
    if zlib and not (stage / "deps/libz.so.1").exists():
        shutil.copy(Path(zlib).resolve(), stage / "deps/libz.so.1")
    if not (stage / "prefix/include/dtrun/torch/data_parallel.h").exists():
        shutil.copytree(SOURCE / "sdk/torch/include/dtrun/torch", stage / "prefix/include/dtrun/torch", dirs_exist_ok=True)


def needs_of(stage):
    files = elf_files(stage / "prefix") + elf_files(stage / "programs") + elf_files(stage / "deps")
    return {"glibc": max(newest_needed(file, "GLIBC") for file in files), "libstdc++": max(newest_needed(file, "GLIBCXX") for file in files)}


def newest_needed(file, prefix):
    return machine.newest(file, prefix)


def commit():
    try:
        return run(["git", "-C", SOURCE, "describe", "--always", "--dirty"], "git").strip()
    except (Problem, OSError):
        return "unknown"


def stage_pack(build, stage):
    install(build, stage / "prefix")
    copy_programs(build, stage / "programs")
    copy_libraries(stage)
    copy_sources(stage)
    (stage / "gpu_check").mkdir()
    for name in MODULES:
        shutil.copy(HERE / f"{name}.py", stage / "gpu_check" / f"{name}.py")
    shutil.copy(HERE / "run.py", stage / "run")
    (stage / "run").chmod(0o755)
    (stage / "README").write_text(readme())
    (stage / "share").symlink_to("prefix/share")  # programs/nccl_library_test looks there for dtrun's table of failures
    manifest = {"schema": 1, "commit": commit(), "date": time.strftime("%Y-%m-%d", time.gmtime()), "needs": needs_of(stage)}
    (stage / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")


def owned_by_root(entry):
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    entry.mode |= stat.S_IRUSR | stat.S_IWUSR
    return entry


def readme():
    """The README with the steps in order, and the latest command that reaches each."""
    command, left, lines = 1, COMMAND_S, []
    for step in STEPS:
        if step["limit"] > left:
            command, left = command + 1, COMMAND_S
        left -= step["limit"]
        lines.append(f"    command {command}  {step['limit']:4} s  {step['name']:28} {step['what']}")
    return README + "\n".join(lines) + "\n"


def pack(given):
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as folder:
        stage = Path(folder) / "gpu-check"
        stage.mkdir()
        stage_pack(given.build.resolve(), stage)
        with tarfile.open(given.out, "w:gz", compresslevel=6) as archive:  # every machine unpacks it; xz and zstd are programs of their own
            archive.add(stage, "gpu-check", filter=owned_by_root)
    size = given.out.stat().st_size
    if size > LIMIT:
        given.out.unlink()
        raise Problem(f"the pack has {size / (1 << 20):.1f} MiB, and 64 are allowed")
    print(f"{given.out}: {size / (1 << 20):.1f} MiB; on the other machine: python3 -m tarfile -e {given.out.name} && python3 gpu-check/run")


def main():
    parser = argparse.ArgumentParser(prog="gpu-check", description="Packs what a machine with a GPU needs to try dtrun; docs/devices.md")
    verbs = parser.add_subparsers(dest="verb", required=True)
    packing = verbs.add_parser("pack", help="write the archive; what is in it runs by ./run")
    packing.add_argument("out", type=Path, help="the archive, .tar.gz, which every Python unpacks")
    packing.add_argument("--build", type=Path, default=SOURCE / "build/release", help="a build of everything (default: %(default)s)")
    given = parser.parse_args()
    if given.out.suffixes[-2:] != [".tar", ".gz"]:
        parser.error(f"'{given.out}' is not a .tar.gz, which every machine unpacks")
    try:
        pack(given)
    except (Problem, OSError) as problem:
        sys.exit(f"gpu-check: {problem}")


if __name__ == "__main__":
    main()
