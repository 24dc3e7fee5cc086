#!/usr/bin/env python3
"""Tries dtrun on a machine with a GPU: ./run in an unpacked gpu-check.

Needs Python 3.9 and nothing else; what it finds of torch, NCCL and CUDA it uses. Writes report.txt, report.json and what every
command printed into --out, and leaves no process. Exit code: 0 every step that could be tried is as it should be; 1 one is not; 2 the
command is wrong; 3 there is no device, so that most steps were skipped."""

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

import own_loader  # noqa: E402
import report  # noqa: E402
import training  # noqa: E402
from check import Check, Failed, Skipped  # noqa: E402
from steps import STEPS  # noqa: E402

SPARE_S = 10  # of the whole, to end and to write


def arguments():
    parser = argparse.ArgumentParser(prog="run", description=__doc__.split("\n\n")[0])
    parser.add_argument("--out", type=Path, default=Path("gpu-check-results"), help="folder of the results (default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=8, help="the most that all steps take together (default: %(default)s)")
    parser.add_argument("--libraries", type=Path, action="append", default=[], help="folder that is searched for NCCL and CUDA first")
    parser.add_argument("--only", default="", help="only the steps whose name this regular expression finds, and 'identity'")
    parser.add_argument("--own-loader", action="store_true", help="the pack's glibc also where this machine's is new enough")
    parser.add_argument("--list", action="store_true", help="print the steps, and run none")
    given = parser.parse_args()
    try:
        re.compile(given.only)
    except re.error as error:
        parser.error(f"--only is '{given.only}', which is no regular expression ({error})")
    if not 0 < given.minutes <= 600:
        parser.error(f"--minutes is {given.minutes}, must be above 0")
    for folder in given.libraries:
        if not folder.is_dir():
            parser.error(f"--libraries is '{folder}', which is no folder")
    return given


def will_compile(check, only):
    """Where nothing can be trained the trainer is compiled on demand only."""
    return re.search(only, "compile") if only else check.device and not check.reason


def try_step(check, step, only):
    """(result, why, facts)"""
    if step["several"] and check.reason:
        return "skipped", check.reason, None
    if step["device"] and not check.device:
        return "skipped", check.reason, None
    if step["name"] == "compile" and not will_compile(check, only):
        return "skipped", check.reason, None
    if check.left() <= 1:
        return "failed", "the time of the run was over", None
    try:
        return "ok", None, step["run"](check)
    except Skipped as reason:
        return "skipped", str(reason), None
    except Failed as reason:
        return "failed", str(reason), None
    except Exception as error:  # a step that breaks must not stop the others
        return "failed", f"{type(error).__name__}: {error}", None


def run_steps(check, given):
    done = []
    for step in STEPS:
        if given.only and step["name"] != "identity" and not re.search(given.only, step["name"]):
            continue
        start, check.last = time.monotonic(), None
        result, because, facts = try_step(check, step, given.only)
        check.runner.end_all_but(check.compiling)
        done.append({"name": step["name"], "what": step["what"], "result": result, "because": because, "facts": facts,
                     "seconds": round(time.monotonic() - start, 2)})
        if check.last is not None:
            done[-1].update(command=check.last.words, exit_code=check.last.code)
            if result == "failed":
                done[-1]["output"] = check.last.text[-4000:]
        print(report.line_of(done[-1]), flush=True)
        if step["name"] == "identity" and will_compile(check, given.only):
            training.start_compiling(check)
    return done


def summary_of(steps, check):
    counts = {word: sum(step["result"] == word for step in steps) for word in ("ok", "failed", "skipped")}
    text = f"{counts['ok']} ok, {counts['failed']} failed, {counts['skipped']} skipped"
    if check.stands_in:
        text += "; over libraries that stand in for CUDA and NCCL, so nothing of this ran on a GPU"
    elif not check.device:
        text += f"; {check.reason}"
    return text, 1 if counts["failed"] else 0 if check.device else 3


def main():
    given = arguments()
    os.environ.setdefault("PATH", "/usr/local/bin:/usr/bin:/bin")
    if given.list:
        for step in STEPS:
            print(f"{step['name']:18} {step['what']}")
        return 0
    out = given.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    start = time.monotonic()
    check = Check(PACK, out, [folder.resolve() for folder in given.libraries])
    check.compiling = None
    check.left = lambda: given.minutes * 60 - SPARE_S - (time.monotonic() - start)
    manifest = json.loads((PACK / "manifest.json").read_text())
    own, folder = own_loader.prepare(check, manifest["needs"], given.own_loader)
    try:
        steps = run_steps(check, given)
    finally:
        left = check.runner.end()
        own_loader.forget(check, folder)
    summary, code = summary_of(steps, check)
    if left:
        summary, code = f"{summary}; processes that do not go: {left}", 1
    written = {"schema": 1, "pack": manifest, "machine": check.machine, "device": check.facts.get("cuda"), "own": own, "summary": summary,
               "steps": steps, "seconds": round(time.monotonic() - start, 1), "exit_code": code,
               "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
    report.write(written, out)
    print(f"{summary}\nwritten: {out}/report.txt, {out}/report.json")
    return code


if __name__ == "__main__":
    sys.exit(main())
