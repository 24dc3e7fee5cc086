"""Compiles the public headers, each alone and all together, in each language standard with each compiler that is installed.

    header_matrix.py INCLUDE_DIR

A line for each compiler and standard says what passed, or why it was left out. Headers in C, the ABI among them, are
compiled alone in every combination. Those in C++ take half a second each: they are compiled alone as C++17 by the first
compiler that is there, and all together in every combination.
"""

import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wundef", "-Werror"]
C_STANDARDS, CXX_STANDARDS = ["c11", "c17"], ["c++17", "c++20"]
LIBCXX = "clang++ -stdlib=libc++"
COMPILERS = {"gcc": C_STANDARDS, "clang": C_STANDARDS, "tcc": ["c11"], "g++": CXX_STANDARDS, "clang++": CXX_STANDARDS,
             LIBCXX: CXX_STANDARDS}


class Matrix:
    def __init__(self, include, folder):
        self.include, self.folder = include, folder
        self.headers = sorted(path.relative_to(include) for path in include.rglob("*.h*"))
        self.of_c = [header for header in self.headers if header.suffix == ".h"]
        self.alone_in_cxx = next((compiler for compiler in ("g++", "clang++") if not self.missing(compiler)), "")

    def missing(self, compiler):
        """Why it cannot be used, or an empty text."""
        program = compiler.split()[0]
        if shutil.which(program) is None:
            return f"{program} is not installed"
        if compiler == LIBCXX:
            tried = subprocess.run([*compiler.split(), "-fsyntax-only", "-xc++", "-"], input="#include <cstddef>\n",
                                   capture_output=True, text=True, check=False)
            return "" if tried.returncode == 0 else "libc++ is not installed"
        return ""

    def cases(self, compiler, standard):
        """Lists of headers, each of which is compiled as one source."""
        if standard in C_STANDARDS:
            return [*([header] for header in self.of_c), self.of_c]
        alone = self.headers if (compiler, standard) == (self.alone_in_cxx, "c++17") else self.of_c
        return [*([header] for header in alone), self.headers]

    def compile(self, case):
        """An empty text, or what the compiler says."""
        number, compiler, standard, headers = case
        source = self.folder / f"{number}.{'cc' if standard in CXX_STANDARDS else 'c'}"
        # Twice: a header that cannot be included again fails too.
        source.write_text("".join(f'#include "{header}"\n' for header in [*headers, *headers]) + "int not_empty(void);\n")
        # tcc always writes a file, and removes the one that was there: as root even a device.
        only = ["-c", "-o", str(source.with_suffix(".o"))] if compiler == "tcc" else ["-fsyntax-only"]
        done = subprocess.run([*compiler.split(), f"-std={standard}", *only, *WARNINGS, f"-I{self.include}", str(source)],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        what = f"{headers[0]} alone" if len(headers) == 1 else "all headers together"
        return "" if done.returncode == 0 else f"{what} as {standard} with {compiler}:\n{done.stdout}"

    def run(self):
        """Whether everything compiled; prints a line for each compiler and standard."""
        cases, left_out = [], {compiler: self.missing(compiler) for compiler in COMPILERS}
        for compiler, standards in COMPILERS.items():
            for standard in standards if not left_out[compiler] else []:
                cases += [(len(cases) + i, compiler, standard, headers)
                          for i, headers in enumerate(self.cases(compiler, standard))]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            said = list(pool.map(self.compile, cases))
        for compiler, standards in COMPILERS.items():
            for standard in standards:
                mine = [text for case, text in zip(cases, said) if case[1:3] == (compiler, standard)]
                print(f"{standard:6} {compiler:23}", f"skipped, because {left_out[compiler]}" if not mine else
                      f"{mine.count('')} of {len(mine)} compilations passed")
        print("\n".join(text for text in said if text))
        return bool(cases) and not any(said)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        sys.exit(0 if Matrix(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(scratch)).run() else 1)
