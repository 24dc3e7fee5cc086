"""Makes the pack's programs use the pack's glibc and libstdc++ if this machine's are older than those of the build.

The loader's name in a program is an absolute path of fixed length, so the pack's loader gets a short name in its own
folder. Other programs on this machine are not changed."""

import os
import shutil
import struct
import tempfile
from pathlib import Path

import machine

PT_INTERP = 3


def interpreter(file):
    """(offset, room, name) of the loader that an ELF program of 64 bits names; None for anything else."""
    content = Path(file).read_bytes() if Path(file).is_file() else b""
    if content[:5] != b"\x7fELF\x02":
        return None
    table, = struct.unpack_from("<Q", content, 32)
    size, count = struct.unpack_from("<HH", content, 54)
    for i in range(count):
        kind, _, offset, _, _, room = struct.unpack_from("<IIQQQQ", content, table + i * size)
        if kind == PT_INTERP:
            return offset, room, content[offset:offset + room].rstrip(b"\0").decode()
    return None


def rename(file, loader):
    found = interpreter(file)
    if found is None:
        return False
    offset, room, _ = found
    name = loader.encode() + b"\0"
    if len(name) > room:
        raise OSError(f"'{loader}' does not fit into {file}")
    with open(file, "r+b") as opened:
        opened.seek(offset)
        opened.write(name.ljust(room, b"\0"))
    return True


def programs_of(pack):
    for folder in ("prefix/bin", "prefix/lib/dtrun", "programs"):
        yield from (file for file in sorted((pack / folder).glob("*")) if file.is_file() and not file.is_symlink())


def link_into(folder, files):
    for file in files:
        target = folder / file.name
        if not target.exists():
            target.symlink_to(os.path.relpath(file, folder))


def prepare(check, needs, force=False):
    """Patches the pack's programs. Returns (what was done, a folder to remove at the end or None)."""
    pack, done, folder = check.pack, [], None
    library = machine.newest(check.machine["libstdc++"], "GLIBCXX") if check.machine["libstdc++"] else ()
    old_glibc = machine.glibc() < tuple(needs["glibc"]) or force
    if library < tuple(needs["libstdc++"]) or old_glibc:
        link_into(pack / "prefix/lib", (pack / "gcc").glob("*.so*"))
        done.append("libstdc++ of the pack")
    if old_glibc:
        link_into(pack / "prefix/lib", (pack / "glibc").glob("*.so*"))
        if not (pack / "prefix/lib/lib").exists():  # path that programs below lib search
            (pack / "prefix/lib/lib").symlink_to(".")
        folder = Path(tempfile.mkdtemp(prefix="dt", dir="/tmp"))
        loader = folder / "ld.so"
        loader.symlink_to(next((pack / "glibc").glob("ld-linux*")))
        for file in programs_of(pack):
            rename(file, str(loader))
        check.link_flags = [f"-Wl,--dynamic-linker={loader}"]
        done.append("glibc of the pack")
    return done, folder


def forget(check, folder):
    """Restores the pack."""
    if folder is None:
        return
    for file in programs_of(check.pack):
        rename(file, "/lib64/ld-linux-x86-64.so.2")
    shutil.rmtree(folder, ignore_errors=True)
