"""`python -m dtrun.horovod train.py ...`: runs a script that imports horovod, unchanged; `-m pkg ...` runs a module.

Like `python train.py ...` and `python -m pkg ...`, with the shim first on the path, so that `import horovod` finds it. Without a
script it prints the folder for PYTHONPATH.
"""

import importlib.util
import os
import runpy
import sys

SHIM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "shim")


def main() -> None:
    if len(sys.argv) < 2:
        print(SHIM)
        return
    is_module = sys.argv[1] == "-m"
    sys.argv = sys.argv[2:] if is_module else sys.argv[1:]
    _check(is_module)
    name = sys.argv[0]
    if not is_module:
        sys.path[0] = os.path.dirname(os.path.abspath(name))
    sys.path.insert(0, SHIM)
    # Child processes of the program find it too.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [SHIM, os.environ.get("PYTHONPATH")]))
    if is_module:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(name, run_name="__main__")


def _check(is_module: bool) -> None:
    if not sys.argv:
        sys.exit("dtrun: python -m dtrun.horovod -m: expected the name of a module")
    name = sys.argv[0]
    if is_module and not _has_module(name):
        sys.exit(f"dtrun: python -m dtrun.horovod -m {name}: there is no module '{name}'; check the name and PYTHONPATH")
    if not is_module and not os.path.exists(name):
        sys.exit(
            f"dtrun: python -m dtrun.horovod: '{name}' does not exist; name a script or -m MODULE, or give no argument to "
            "get the folder for PYTHONPATH"
        )


def _has_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # the package that contains it
        return False


if __name__ == "__main__":
    main()
