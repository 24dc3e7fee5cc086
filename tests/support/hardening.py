"""What an installed program or library has against attacks (docs/security.md), as readelf tells it."""

import functools
import platform
import re
import subprocess
import tempfile

ENDBR64 = b"\xf3\x0f\x1e\xfa"  # where an indirect call may land
ENDBR64_OF_CRT = 8  # at most so many are of the C runtime's own files
# Copies of other people's, as their distribution compiled them.
FOREIGN = ("libglpN.so.0",)


def elf_files(files):
    """The programs and libraries among them, without links."""
    return [file for file in files if file.is_file() and not file.is_symlink() and file.name not in FOREIGN and is_linked(file)]


def is_linked(file):
    with file.open("rb") as opened:
        head = opened.read(18)
    return head[:4] == b"\x7fELF" and head[16] in (2, 3)  # ET_EXEC, ET_DYN


def weaknesses(file):
    """Words for what the file lacks."""
    told = subprocess.run(["readelf", "--wide", "--file-header", "--segments", "--sections", "--dynamic", "--dyn-syms", "--notes", file],
                          check=True, capture_output=True, text=True).stdout
    program = re.search(r"^ +INTERP ", told, re.M) is not None
    found = {
        "relocations that stay writable": "GNU_RELRO" not in told,
        "symbols that are bound late": re.search(r"\((FLAGS|FLAGS_1)\).*\b(BIND_)?NOW\b", told) is None,
        "an executable stack": re.search(r"GNU_STACK.* RW +0x", told) is None,
        "a fixed place in memory": program and re.search(r"FLAGS_1\).*\bPIE\b", told) is None,
        "no stack protector": "__stack_chk_fail" not in told,
        "symbols or debug information": re.search(r"\] \.(symtab|debug_\w+) ", told) is not None,
    }
    if platform.machine() == "x86_64":
        found["no landing pads for indirect calls"] = file.read_bytes().count(ENDBR64) <= ENDBR64_OF_CRT
        found["no mark of them"] = crt_is_marked() and re.search(r"x86 feature: .*IBT, SHSTK", told) is None
    return [what for what, weak in found.items() if weak]


@functools.cache
def crt_is_marked():
    """Whether this toolchain's own files have landing pads, without which nothing that is linked with them has the mark."""
    with tempfile.TemporaryDirectory(prefix="dtrun-test-crt-") as folder:
        done = subprocess.run(["cc", "-fcf-protection", "-x", "c", "-", "-o", f"{folder}/program"], input="int main() { return 0; }",
                              text=True, check=False)
        notes = subprocess.run(["readelf", "-n", f"{folder}/program"], capture_output=True, text=True, check=False).stdout
        return done.returncode == 0 and "IBT, SHSTK" in notes
