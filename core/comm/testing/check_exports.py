"""Fails unless a library exports exactly the functions that the headers declare, each with a version.

usage: check_exports.py NM LIBRARY HEADER...
"""
import re
import subprocess
import sys

nm, library, *headers = sys.argv[1:]
declared, header = set(), " and ".join(headers)
for name in headers:
    with open(name, encoding="utf-8") as file:
        declared |= set(re.findall(r"^DTRUN_API [^;(]*?\b(dtrun_\w+)\(", file.read(), re.MULTILINE))
listing = subprocess.run([nm, "-D", "--defined-only", "--with-symbol-versions", library],
                         check=True, capture_output=True, text=True).stdout
# "ADDRESS T dtrun_init@@DTRUN_1.0", and "ADDRESS A DTRUN_1.0" for the version itself
exported = dict((line.split()[-1].split("@@") + [""])[:2] for line in listing.splitlines() if line.split()[1] != "A")

wrong = [f"{library} does not export {name}, which {header} declare; name it in dtrun.map"
         for name in sorted(declared - exported.keys())]
wrong += [f"{library} exports {name}, which {header} do not declare" for name in sorted(exported.keys() - declared)]
wrong += [f"{name} has the version '{version}', must have that of its ABI, such as DTRUN_1.0"
          for name, version in sorted(exported.items()) if not re.fullmatch(r"DTRUN_(\d+\.\d+|DEVICE_DRAFT_\d+)", version)]
if not declared:
    wrong.append(f"{header} declare no function")
print("\n".join(wrong))
sys.exit(1 if wrong else 0)
