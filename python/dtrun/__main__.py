"""`python -m dtrun`: runs the program `dtrun` of this installation with the given arguments."""

import os
import shutil
import sys

package = os.path.dirname(os.path.abspath(__file__))
own = (os.path.join(package, "native/bin/dtrun"), os.path.normpath(os.path.join(package, "../../../../bin/dtrun")))  # of a wheel, of a prefix
path = os.pathsep.join(filter(os.path.isabs, os.get_exec_path()))  # not of the current folder
program = next((file for file in own if os.path.exists(file)), None) or shutil.which("dtrun", path=path)
if program is None:
    print(f"python -m dtrun: there is no program dtrun at {own[0]}, at {own[1]} or in PATH; install dtrun's wheel "
          "(docs/install.md), or put the folder of dtrun into PATH", file=sys.stderr)
    sys.exit(2)
os.environ.setdefault("PYTHON_EXEC", sys.executable)  # what `dtrun torchrun` starts, as PyTorch's torchrun does
os.execv(program, ["dtrun", *sys.argv[1:]])
