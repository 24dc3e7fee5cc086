"""Fails when a struct or a member of the ABI's headers is missing from abi_layout.inc.

Static assertions hold what is listed; this holds that everything is listed.
"""

import pathlib
import re
import sys


def members(body):
    """Names of the members in a struct's body, comments removed."""
    for declaration in filter(None, (part.strip() for part in body.split(";"))):
        pointer = re.search(r"\(\*(\w+)\)", declaration)
        yield pointer.group(1) if pointer else re.search(r"(\w+)\s*(\[\w+\])?$", declaration).group(1)


def main(headers, listing):
    listed = set(re.findall(r"DTRUN_MEMBER\((\w+), (\w+),", listing.read_text()))
    found = set()
    for header in sorted(headers.glob("*.h")):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
        for name, body in re.findall(r"typedef struct (\w+) \{(.*?)\n\} \1;", text, flags=re.S):
            found.update((name, member) for member in members(body))
    for name, member in sorted(found - listed):
        print(f"{listing}: '{name}.{member}' is missing; add its line")
    for name, member in sorted(listed - found):
        print(f"{listing}: '{name}.{member}' exists in no header; members are never removed")
    return 1 if not found or found != listed else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])))
