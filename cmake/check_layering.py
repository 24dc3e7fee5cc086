"""Fails when an include crosses the layers the wrong way.

    tools -> core -> sdk/include          plugins, launchers -> sdk/include only

Within core, a folder includes itself and those above it in core/CMakeLists.txt, which lists them bottom to top.

check_layering.py SOURCE_DIR. Folders that do not exist hold nothing. Tests (*_test.cc, testing/) of a plugin or a
launcher may use core to drive it: they are never part of the shared object. Tests of core may look up, too.
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


def order_of_core(root):
    """Folder of core -> its place, from the lines `add_subdirectory(FOLDER)`; those below a folder count as it."""
    lists = root / "core" / "CMakeLists.txt"
    if not lists.exists():
        return {}
    folders = re.findall(r"^add_subdirectory\(([a-z_]+)\)", lists.read_text(encoding="utf-8"), re.MULTILINE)
    return {folder: place for place, folder in enumerate(folders)}


def upward(root):
    order = order_of_core(root)
    if not order:
        return
    for path in sorted((root / "core").glob("*/**/*")):
        if path.suffix not in SUFFIXES or path.stem.endswith("_test"):
            continue
        room = path.relative_to(root / "core").parts[0]
        if room not in order:
            yield f"{path.relative_to(root)}: core/{room} is missing in core/CMakeLists.txt"
            continue
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        for number, line in enumerate(lines, start=1):
            match = INCLUDE.match(line)
            other = match and re.match(r"core/([a-z_]+)/", match.group(1))
            if other and order.get(other.group(1), len(order)) > order[room]:
                yield (f"{path.relative_to(root)}:{number}: includes '{match.group(1)}'; core/{other.group(1)} comes after "
                       f"core/{room} in core/CMakeLists.txt")


def problems(root):
    yield from upward(root)
    for folder, (prefixes, why) in FORBIDDEN.items():
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in SUFFIXES:
                continue
            if folder in ("plugins", "launchers") and (path.stem.endswith("_test") or path.parent.name == "testing"):
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
