"""Compiles every public header alone, and all of them together in each language standard with each compiler that exists.

header_matrix.py INCLUDE_DIR CC CXX [CC CXX ...]; compilers that are not found are named and left out, but at least one
pair must exist. What a header fails to include shows with the first pair and the oldest standards as well as with others.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

FLAGS = ["-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wundef", "-Werror"]
C_STANDARDS = ["c11", "c17"]
CXX_STANDARDS = ["c++17", "c++20"]


def compiles(compiler, standard, include, headers, folder):
    source = folder / ("headers.cc" if standard.startswith("c++") else "headers.c")
    # Twice: a header that cannot be included again fails too.
    source.write_text("".join(f'#include "{header}"\n' for header in [*headers, *headers]) + "int not_empty(void);\n")
    command = [compiler, f"-std={standard}", *FLAGS, f"-I{include}", str(source)]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        what = f"{headers[0]} alone" if len(headers) == 1 else "all headers"
        print(f"{what} as {standard} with {compiler}:\n{result.stderr}")
    return result.returncode == 0


def main(include, compilers):
    pairs = list(zip(compilers[::2], compilers[1::2]))
    present = [pair for pair in pairs if all(map(shutil.which, pair))]
    for pair in pairs:
        if pair not in present:
            print(f"not found, left out: {' and '.join(pair)}")
    headers = sorted(path.relative_to(include) for path in include.rglob("*.h*"))
    of_c = [header for header in headers if header.suffix == ".h"]
    cc, cxx = present[0]
    runs = [(cxx, CXX_STANDARDS[0], [header]) for header in headers]
    runs += [(cc, C_STANDARDS[0], [header]) for header in of_c]
    for cc, cxx in present:
        runs += [(cxx, standard, headers) for standard in CXX_STANDARDS]
        runs += [(cc, standard, of_c) for standard in C_STANDARDS]
    with tempfile.TemporaryDirectory() as folder:
        passed = sum(compiles(*run[:2], include, run[2], pathlib.Path(folder)) for run in runs)
    print(f"{passed} of {len(runs)} compilations passed")
    return 0 if passed == len(runs) else 1


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), sys.argv[2:]))
