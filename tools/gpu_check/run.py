#!/usr/bin/env python3
"""Tries dtrun on a machine with a GPU: ./run in an unpacked gpu-check.

Needs only Python 3.9, and uses torch, NCCL and CUDA if they are installed. Writes report.txt, report.json and the
output of every command into --out, packs all of it into one archive after every step, and leaves no process. Exit
code: 0 if every step that could be tried passed; 1 if one failed; 2 if the command line is wrong; 3 if there is no
device, so that most steps were skipped; 4 like 0, but the time did not suffice for all steps: --resume tries the
others."""

import argparse
import json
import os
import re
import signal
import sys
import time
from pathlib import Path

PACK = Path(__file__).resolve().parent
sys.path.insert(0, str(PACK / "gpu_check"))
sys.dont_write_bytecode = True

import archive  # noqa: E402
import own_loader  # noqa: E402
import report  # noqa: E402
import training  # noqa: E402
from check import Check, Failed, Skipped  # noqa: E402
from steps import STEPS  # noqa: E402

SPARE_S = 10  # reserved for ending and writing
# Shows in a rehearsal that a step reached the call that needs the device, and failed only there.
NO_DEVICE = re.compile(r"there is no such device|this process has (none|no CUDA device)|insufficient for CUDA runtime|"
                       r"no CUDA-capable device|before first instrumented API call|sees no (CUDA device|GPU)")


def arguments():
    parser = argparse.ArgumentParser(prog="run", description=__doc__.split("\n\n")[0])
    parser.add_argument("--out", type=Path, default=Path("gpu-check-results"), help="folder of the results (default: %(default)s)")
    parser.add_argument("--archive", type=Path, help="file that holds them all, .tar.gz (default: that of --out, with .tar.gz)")
    parser.add_argument("--minutes", type=float, default=9, help="the most that all steps take together (default: %(default)s)")
    parser.add_argument("--patience", type=float, default=1, help="factor of each step's limit (default: %(default)s)")
    parser.add_argument("--resume", action="store_true", help="go on where the last run into --out ended; what it tried is not tried again")
    parser.add_argument("--libraries", type=Path, action="append", default=[], help="folder that is searched for NCCL and CUDA first")
    parser.add_argument("--only", default="", help="only the steps with a name that matches this regular expression, and 'identity'")
    parser.add_argument("--rehearse", action="store_true", help="without a device: steps of torch on the CPU, all others as far as the device")
    parser.add_argument("--own-loader", action="store_true", help="the pack's glibc also where this machine's is new enough")
    parser.add_argument("--list", action="store_true", help="print the steps and the seconds that each may take, and run none")
    given = parser.parse_args()
    try:
        re.compile(given.only)
    except re.error as error:
        parser.error(f"--only is '{given.only}', which is no regular expression ({error})")
    if not 0 < given.minutes <= 600:
        parser.error(f"--minutes is {given.minutes}, must be above 0")
    if not 0 < given.patience <= 100:
        parser.error(f"--patience is {given.patience}, must be above 0")
    for folder in given.libraries:
        if not folder.is_dir():
            parser.error(f"--libraries is '{folder}', which is no folder")
    given.out = given.out.resolve()
    given.archive = (given.archive or given.out.with_name(given.out.name + ".tar.gz")).resolve()
    if not given.archive.parent.is_dir():
        parser.error(f"--archive is '{given.archive}', and there is no folder '{given.archive.parent}'")
    return given


def will_compile(check, only):
    """Compiles the trainer only on demand if nothing can be trained."""
    return re.search(only, "compile") if only else check.rehearse or (check.device and not check.reason)


def obstacle(check, step, only):
    """Why the step cannot be tried, or None."""
    rehearsed = check.rehearse and (step["torch"] or not check.device)
    if step["name"] == "compile":
        return None if will_compile(check, only) else check.reason
    if (step["several"] and check.reason or step["device"] and not check.device) and not rehearsed:
        return check.reason
    for needed in step["needs"]:
        result = check.results.get(needed, {"result": "ok"})
        if result["result"] in ("failed", "waiting") or (result["result"] == "skipped" and not rehearsed):
            return f"{needed} {'has not been tried' if result['result'] == 'waiting' else result['result']}: {result['because']}"
    return None


def try_step(check, step):
    """(result, why, facts)"""
    try:
        return "ok", None, step["run"](check)
    except Skipped as reason:
        return "skipped", str(reason), None
    except Failed as reason:
        if check.rehearse and not check.device and (found := NO_DEVICE.search(f"{reason} {check.last.text if check.last else ''}")):
            return "skipped", f"it reached the device: {found[0]}", None
        return "failed", str(reason), None
    except Exception as error:  # a broken step must not stop the others
        return "failed", f"{type(error).__name__}: {error}", None


def summary_of(check, left):
    counts = {word: sum(step["result"] == word for step in check.results.values()) for word in ("ok", "failed", "skipped", "waiting")}
    text = f"{counts['ok']} ok, {counts['failed']} failed, {counts['skipped']} skipped"
    if counts["waiting"]:
        text += f", {counts['waiting']} not tried because the time was over: --resume tries them"
    if check.stands_in:
        text += "; over libraries that stand in for CUDA and NCCL, so nothing of this ran on a GPU"
    elif not check.device:
        text += f"; {check.reason}" + ("; rehearsed, torch on the CPU" if check.rehearse else "")
    if left:
        text += f"; processes that do not go: {left}"
    return text, 1 if counts["failed"] or left else 3 if not check.device else 4 if counts["waiting"] else 0


class Run:
    """A run in progress: saves its results after every step."""

    def __init__(self, given):
        self.given, self.start = given, time.monotonic()
        given.out.mkdir(parents=True, exist_ok=True)
        earlier = self.read() if given.resume else {}
        self.check = Check(PACK, given.out, [folder.resolve() for folder in given.libraries], given.rehearse)
        self.check.results.update(earlier)
        self.manifest = json.loads((PACK / "manifest.json").read_text())
        self.own, self.folder = own_loader.prepare(self.check, self.manifest["needs"], given.own_loader)

    def read(self):
        """The valid results of an earlier run, by name."""
        try:
            steps = json.loads((self.given.out / "report.json").read_text())["steps"]
        except (OSError, ValueError, KeyError):
            return {}
        for step in steps:
            if step["result"] == "running":
                step.update(result="failed", because="the run was ended while this was tried")
        return {step["name"]: step for step in steps if step["result"] != "waiting"}

    def left(self):
        return self.given.minutes * 60 - SPARE_S - (time.monotonic() - self.start)

    def write(self, left=()):
        check = self.check
        summary, code = summary_of(check, left)
        report.write({"schema": 2, "pack": self.manifest, "machine": check.machine, "device": check.facts.get("cuda"), "own": self.own,
                      "summary": summary, "steps": list(check.results.values()), "seconds": round(time.monotonic() - self.start, 1),
                      "exit_code": code, "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}, self.given.out)
        archive.write(self.given.out, self.given.archive)
        return summary, code

    def do(self, step):
        check, only = self.check, self.given.only
        start, check.last = time.monotonic(), None
        done = {"name": step["name"], "what": step["what"], "result": "running", "because": obstacle(check, step, only), "facts": None}
        limit = step["limit"] * self.given.patience
        if done["because"]:
            done["result"] = "skipped"
        elif self.left() < limit and step["name"] != "identity":
            done.update(result="waiting", because=f"it may take {limit:g} s and {max(self.left(), 0):.0f} are left of this run; --resume tries it")
        else:
            check.results[step["name"]] = done
            self.write()
            check.deadline = time.monotonic() + limit
            done["result"], done["because"], done["facts"] = try_step(check, step)
            check.runner.end_all_but(check.compiling)
        check.results[step["name"]] = done
        done["seconds"] = round(time.monotonic() - start, 2)
        if check.last is not None:
            done.update(command=check.last.words, exit_code=check.last.code)
            if done["result"] == "failed":
                done["output"] = check.last.text[-4000:]
        print(report.line_of(done), flush=True)
        self.write()
        if step["name"] == "identity" and will_compile(check, only):
            training.start_compiling(check)

    def all_steps(self):
        only = self.given.only
        for step in STEPS:
            if step["name"] != "identity" and (step["name"] in self.check.results or (only and not re.search(only, step["name"]))):
                continue
            self.do(step)


def main():
    given = arguments()
    os.environ.setdefault("PATH", "/usr/local/bin:/usr/bin:/bin")
    if given.list:
        for step in STEPS:
            print(f"{step['name']:26} {step['limit']:4} s  {step['what']}")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    run = Run(given)
    left = ()
    try:
        run.all_steps()
    finally:
        left = run.check.runner.end()
        own_loader.forget(run.check, run.folder)
        summary, code = run.write(left)
    print(f"{summary}\nwritten: {given.out}/report.txt, {given.out}/report.json, {given.archive}")
    return code


if __name__ == "__main__":
    sys.exit(main())
