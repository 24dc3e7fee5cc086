"""Fails when an include crosses the layers the wrong way.

    tools -> core -> sdk/include          plugins, launchers -> sdk/include only

check_layering.py SOURCE_DIR. Folders that do not exist hold nothing. Tests (*_test.cc) of a plugin or a
launcher may use core to drive it: they are never part of the shared object.
"""

import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]')
SUFFIXES = {".h", ".hpp", ".c", ".cc"}

# Folder -> prefixes that its files must not include, and why.
FORBIDDEN = {
    "core": (("plugins/", "launchers/", "tools/"), "core knows plugins through the C ABI only"),
    "plugins": (("core/", "launchers/", "tools/"), "a plugin sees sdk/include only"),
    "launchers": (("core/", "plugins/", "tools/"), "a launcher sees sdk/include only"),
    "sdk": (("core/", "plugins/", "launchers/", "tools/"), "the SDK depends on nothing"),
}


def problems(root):
    for folder, (prefixes, why) in FORBIDDEN.items():
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in SUFFIXES:
                continue
            if folder in ("plugins", "launchers") and path.stem.endswith("_test"):
                continue
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
            for number, line in enumerate(lines, start=1):
                match = INCLUDE.match(line)
                if match is None:
                    continue
                # A relative include reaches out of its folder in the same way.
                resolved = (path.parent / match.group(1)).resolve()
                inside = resolved.relative_to(root).as_posix() if resolved.is_relative_to(root) else ""
                for target in (match.group(1), inside if match.group(1).startswith("..") else ""):
                    if target.startswith(prefixes):
                        yield f"{path.relative_to(root)}:{number}: includes '{match.group(1)}'; {why}"


def main(root):
    found = list(problems(root.resolve()))
    for problem in found:
        print(problem)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
