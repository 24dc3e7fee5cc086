"""Compiles every public header alone, in each language standard and with each compiler that exists.

header_matrix.py INCLUDE_DIR CC CXX [CC CXX ...]; compilers that are not found are named and left out,
but at least one pair must exist.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

FLAGS = ["-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wundef", "-Werror"]
C_STANDARDS = ["c11", "c17"]
CXX_STANDARDS = ["c++17", "c++20"]


def compile_alone(compiler, standard, include, header, folder):
    source = folder / ("alone.cc" if standard.startswith("c++") else "alone.c")
    # Twice: a header that cannot be included again fails too.
    source.write_text(f'#include "{header}"\n#include "{header}"\nint not_empty(void);\n')
    command = [compiler, f"-std={standard}", *FLAGS, f"-I{include}", str(source)]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        print(f"{header} alone as {standard} with {compiler}:\n{result.stderr}")
    return result.returncode == 0


def main(include, compilers):
    pairs = list(zip(compilers[::2], compilers[1::2]))
    present = [pair for pair in pairs if all(map(shutil.which, pair))]
    for pair in pairs:
        if pair not in present:
            print(f"not found, left out: {' and '.join(pair)}")
    headers = sorted(path.relative_to(include) for path in include.rglob("*.h*"))
    checks = passed = 0
    with tempfile.TemporaryDirectory() as folder:
        for cc, cxx in present:
            for header in headers:
                runs = [(cxx, standard) for standard in CXX_STANDARDS]
                if header.suffix == ".h":
                    runs += [(cc, standard) for standard in C_STANDARDS]
                for compiler, standard in runs:
                    checks += 1
                    passed += compile_alone(compiler, standard, include, header, pathlib.Path(folder))
    print(f"{passed} of {checks} compilations passed")
    return 0 if checks > 0 and passed == checks else 1


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), sys.argv[2:]))
