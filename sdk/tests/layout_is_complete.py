"""Fails when a part of the ABI's headers is missing from the lists abi_layout.inc, abi_types.inc, device_layout.inc and device_types.inc, or is no more.

Static assertions hold what is listed; this holds that everything is listed: structs with their members, and what
has a value that both sides of the ABI compare.
"""

import pathlib
import re
import sys

# The version moves.
MOVES = re.compile(r"DTRUN_ABI_(MAJOR|MINOR|REQUIRED)|DTRUN_PLUGIN_DRAFT")


def members(body):
    """Names of the members in a struct's body, comments removed, and whether each is an array."""
    for declaration in filter(None, (part.strip() for part in body.split(";"))):
        pointer = re.search(r"\(\*(\w+)\)", declaration)
        name = pointer.group(1) if pointer else re.search(r"(\w+)\s*(\[\w+\])?$", declaration).group(1)
        yield name, declaration.endswith("]")


def constants(text):
    for body in re.findall(r"enum \{(.*?)\};", text, flags=re.S):
        yield from re.findall(r"\b(DTRUN_\w+)\s*=", body)
    yield from re.findall(r'^#define (DTRUN_\w+) (?="|0x|UINT64_C|\d)', text, flags=re.M)


def main(headers, *lists):
    kinds = {"layout": set(), "type": set(), "value": set()}
    draft = set()  # structs of the device draft
    for header in sorted(headers.glob("*.h")):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
        for name, body in re.findall(r"typedef struct (\w+) \{(.*?)\n\} \1;", text, flags=re.S):
            for member, array in members(body):
                kinds["layout"].add(f"{name}.{member}")
                if header.name == "device.h":
                    draft.add(name)
                if not array:
                    kinds["type"].add(f"{name}.{member}")
        kinds["value"].update(name for name in constants(text) if not MOVES.fullmatch(name))
    listed_text = "".join(file.read_text() for file in lists)
    listed = {
        "layout": {".".join(found) for found in re.findall(r"DTRUN_MEMBER\((\w+), (\w+),", listed_text)},
        "type": {".".join(found) for found in re.findall(r"DTRUN_TYPE\((\w+), (\w+),", listed_text)},
        "value": set(re.findall(r"DTRUN_(?:VALUE|TEXT)\((\w+),", listed_text)),
    }
    floors = set(re.findall(r"  SIZE\((\w+), \d+\)", (headers / "structs.h").read_text()))
    sized = {name.split(".")[0] for name in kinds["layout"] if name.endswith(".struct_size")} - draft
    for name in sorted(floors ^ sized):
        print(f"'{name}' is in {'DTRUN_FLOORS' if name in floors else 'the headers'} alone; each struct has a floor")
    wrong = floors != sized
    for kind, found in kinds.items():
        for name in sorted(found - listed[kind]):
            print(f"the {kind} of '{name}' is not listed; add its line")
        for name in sorted(listed[kind] - found):
            print(f"the {kind} of '{name}' is listed, and no header has it; nothing of the ABI is ever removed")
        wrong = wrong or not found or found != listed[kind]
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*map(pathlib.Path, sys.argv[1:])))
