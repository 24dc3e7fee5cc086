"""Fails where a program is started, or a process made, outside the places listed here.

Helpers are started by sdk/helpers, which keeps files of the current folder out (sdk/helpers/helper.h).
PLACES says who starts processes in another way, and why. A call that is new here belongs to sdk/helpers, or needs a
line with its reason.

check_starts.py SOURCE_DIR. Tests, and tools for developers of dtrun, are not looked at.
"""

import pathlib
import re
import sys

FOLDERS = ("core", "plugins", "launchers", "sdk", "tools/dtrun", "tools/dtrun-pmix", "tools/dtrun-train", "python/dtrun")
TESTS = re.compile(r"(^|/)(tests?|testing|fake|broken|examples)/|_test\.(cc|h)$")

# File -> the calls that it may have, and why they are no helper's.
PLACES = {
    "sdk/helpers/helper.cc": ("fork execve", "the one way to start a helper"),
    "core/process/spawn.cc": ("clone SYS_clone3 fork execve", "ranks; and, found as helpers are, what runs as long as the job: remote shells, dtrun-pmix"),
    "core/node/guard.cc": ("fork", "the agent, which is dtrun itself; nothing is executed"),
    "core/plugin/probe.cc": ("posix_spawn", "dtrun itself by /proc/self/exe, in the folder and the environment in which ranks load the plugin"),
    "core/plugin/probe_keeper.cc": ("fork", "the process of a probe that loads the plugin; nothing is executed"),
    "core/pmi/libpmix/confine.cc": ("SYS_clone", "the seccomp filter lets threads be made, and nothing else"),
    "plugins/nccl/peer_access.cc": ("fork", "asks CUDA in a process of its own; nothing is executed"),
    "tools/dtrun/new_plugin.cc": ("execv", "becomes dtrun-conformance, of this installation or found as helpers are, in the user's folder"),
    "tools/dtrun/mpirun/verbs.cc": ("fork execv", "a rank below mpirun; becomes the rank, or /bin/sh with the command that mpirun gives its remote shell"),
    "sdk/conformance/processes.cc": ("fork", "a rank of the suite; nothing is executed"),
    "sdk/conformance/stopped_suite.cc": ("fork", "ranks of the suite, some of which are stopped; nothing is executed"),
    "sdk/conformance/own_process.cc": ("fork", "a case of the suite; nothing is executed"),
    "sdk/conformance/tool/case_process.cc": ("fork execvp", "the tool itself, once for each case"),
    "python/dtrun/__main__.py": ("execv", "becomes dtrun, by an absolute path"),
    "python/dtrun/functions/end_with_parent.py": ("execv", "becomes dtrun, by the path that functions/process.py found"),
    "python/dtrun/functions/process.py": ("Popen", "dtrun, or what removes a folder, by this Python with -I -S"),
    "python/dtrun/functions/launch.py": ("run", "dtrun, by the path that functions/process.py found"),
}

CPP = re.compile(r"(?<![\w.>])(popen|system|exec[lv]p?e?|execvpe|fexecve|execveat|posix_spawnp?|_?fork|vfork|clone3?)\s*\("
                 r"|\b(SYS_(?:execve|execveat|fork|vfork|clone3?))\b")  # fmt: skip
PYTHON = re.compile(r"\b(?:subprocess|commands)\.(\w+)\(|\bos\.(system|popen|exec\w+|(?:posix_)?spawn\w+|fork\w*)\("
                    r"|\basyncio\.(create_subprocess_\w+)\(|\bpty\.(spawn|fork)\(|\bfrom (?:subprocess) (import)\b")  # fmt: skip
# Comments and strings, of which the calls are no calls.
CPP_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|R"\((?:.*?)\)"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)
PYTHON_TEXT = re.compile(r'#[^\n]*|""".*?"""|"(?:\\.|[^"\\\n])*"', re.DOTALL)


def blank(match):
    """As many lines, without what is in them."""
    return "\n" * match.group().count("\n")


def calls(path):
    """(line, call) of each one in the file."""
    text = path.read_text(encoding="utf-8", errors="replace")
    python = path.suffix == ".py"
    text = (PYTHON_TEXT if python else CPP_TEXT).sub(blank, text)
    for match in (PYTHON if python else CPP).finditer(text):
        yield text.count("\n", 0, match.start()) + 1, next(filter(None, match.groups()))


def problems(root):
    unused = {name: set(allowed.split()) for name, (allowed, _) in PLACES.items() if (root / name).exists()}
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.suffix not in (".h", ".hpp", ".c", ".cc", ".cu", ".py") or TESTS.search(name):
                continue
            if path.suffix == ".py" and not name.startswith("python/"):
                continue
            allowed = PLACES.get(name, ("",))[0].split()
            for line, call in calls(path):
                unused.get(name, set()).discard(call)
                if call not in allowed:
                    yield (f"{name}:{line}: calls {call}; start a helper by sdk/helpers/helper.h, or add the file to "
                           "PLACES in sdk/tests/check_starts.py with the reason")  # fmt: skip
    for name, left in unused.items():
        if left:
            yield f"{name}: no longer calls {' '.join(sorted(left))}; take it out of PLACES in sdk/tests/check_starts.py"


def main(root):
    found = list(problems(root.resolve()))
    for problem in found:
        print(problem)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
