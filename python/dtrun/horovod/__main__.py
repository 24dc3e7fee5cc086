"""`python -m dtrun.horovod train.py ...`: runs a script that imports horovod, unchanged.

As `python train.py ...`, with the shim before everything else that `import horovod` could find. Without a script it prints
the folder for PYTHONPATH.
"""

import os
import runpy
import sys

SHIM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "shim")


def main() -> None:
    if len(sys.argv) < 2:
        print(SHIM)
        return
    script = sys.argv[1]
    if not os.path.exists(script):
        sys.exit(
            f"dtrun: python -m dtrun.horovod: '{script}' does not exist; name a script, or give no argument to get the "
            "folder for PYTHONPATH"
        )
    sys.argv = sys.argv[1:]
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    sys.path.insert(0, SHIM)
    # What the script starts is to find it too.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [SHIM, os.environ.get("PYTHONPATH")]))
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
