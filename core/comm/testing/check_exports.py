"""Fails unless a library exports exactly the functions that a header declares.

usage: check_exports.py NM LIBRARY HEADER
"""
import re
import subprocess
import sys

nm, library, header = sys.argv[1:]
with open(header, encoding="utf-8") as file:
    declared = set(re.findall(r"^DTRUN_API [^;(]*?\b(dtrun_\w+)\(", file.read(), re.MULTILINE))
listing = subprocess.run([nm, "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
exported = {line.split()[-1].split("@")[0] for line in listing.splitlines()}

for name in sorted(declared - exported):
    print(f"{library} does not export {name}, which {header} declares")
for name in sorted(exported - declared):
    print(f"{library} exports {name}, which {header} does not declare")
if not declared:
    print(f"{header} declares no function")
sys.exit(0 if declared and declared == exported else 1)
