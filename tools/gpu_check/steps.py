"""The steps of a run, by decreasing value. Each is a function that returns facts, or raises Skipped or Failed."""

import json
import re
from pathlib import Path

import benches
import torch_steps
import training
from check import DEVICE_BACKEND, STAGING, Failed, Skipped, cause, said_by_ranks
from machine import find_program
from registry import STEPS, step  # noqa: F401 - run.py takes STEPS from here, where all have been added

def describe_machine(check):
    """Facts for later reference, beside the steps' output; they decide nothing."""
    for name, words in (("nvidia-smi", ["nvidia-smi"]), ("topology", ["nvidia-smi", "topo", "-m"]), ("processors", ["lscpu"]),
                        ("loader", ["ldconfig", "-p"]), ("memory", ["df", "-h", "/dev/shm", "/tmp"])):
        if find_program(words[0]):
            check.runner.run(name, [find_program(words[0]), *words[1:]], 5, check.environment(), check.out)


@step("identity", "which NCCL and CUDA these are", 30, device=False)
def identity(check):
    check.reason = "the libraries could not be asked"
    describe_machine(check)
    facts = check.probe()
    check.device, check.reason = facts["cuda"].get("devices", 0) > 0, None
    if not check.device:
        code = facts["cuda"].get("code")
        error = facts["cuda"].get("error") or "it counts none"
        check.reason = f"there is no CUDA device: {error}" + (f" (error {code})" if code else "")
    elif facts["nccl"].get("stands_in"):
        check.reason = "the NCCL that was found stands in for a real one, and joins threads of one process only"
    check.facts = facts
    check.last.out += "\n" + json.dumps(facts)
    if "version" not in facts["nccl"]:
        raise Skipped(f"there is no NCCL: {facts['nccl'].get('error')}")
    if not facts["nccl"]["hostid"] and not facts["nccl"]["stands_in"]:
        raise Failed("this NCCL knows no NCCL_HOSTID, so several ranks cannot share a device")
    return facts


def program(check, what, ranks, *arguments, name=None, **more):
    name = name or f"{what}-{ranks}"
    done = check.job(name, ranks, [check.programs / "device_program", what, *arguments], **more)
    check.expect_code(done)
    facts = {"lines": said_by_ranks(done)}
    if found := check.transport(name):
        facts["nccl_says"] = found
    return facts


def add_program(part, what, ranks, limit, needs="operations-1"):
    needs = "operations-2" if ranks > 1 and part != "operations" else needs
    step(f"{part}-{ranks}", f"{what}, {ranks} rank{'s' * (ranks > 1)} over nccl", limit, several=ranks > 1, needs=needs)(
        lambda check: program(check, part, ranks))


OPERATIONS = "every operation and type"
STREAMS = "work of several streams is ordered"
CAPTURE = "an operation in a graph, captured in each mode"
LARGE = "operations around and far above 4 MiB, every element"
ORDER = "operations between delays on the device are in order"

add_program("operations", OPERATIONS, 1, 25, ())
add_program("capture", CAPTURE, 1, 15)
add_program("order", ORDER, 1, 15)
add_program("large", LARGE, 1, 15)


def staging(check, part, way, *arguments):
    sets = {"shm": STAGING, "gloo": [*STAGING, "comm.local=none"], "ucx": ["backend.name=cpu:ucx,cuda:ucx", "comm.local=none"]}[way]
    if not check.plugin("backend", sets[0].split(":")[-1]).exists():
        raise Skipped(f"the pack has no {way}")
    facts = program(check, part, 2, *arguments, name=f"{part}-{way}", sets=sets)
    check.expect_text(check.last, rf"carried by staging over {way}")
    return facts


def add_staging(part, what, way, limit, needs="staging-shm"):
    name = f"staging-{way}" if part == "operations" else f"staging-{part}"
    step(name, f"{what}, 2 ranks by staging over {way}", limit, needs=needs)(lambda check: staging(check, part, way))


add_staging("operations", OPERATIONS, "shm", 25, ())
add_staging("large", LARGE, "shm", 20)
add_staging("beside", "calls that wait for the device beside a sum", "shm", 20)
add_staging("order", ORDER, "shm", 15)
add_staging("streams", STREAMS, "shm", 10)
add_program("operations", OPERATIONS, 2, 25)
add_program("capture", CAPTURE, 2, 20)
add_program("large", LARGE, 2, 25)
add_program("order", ORDER, 2, 20)

torch_steps.add_all()
benches.add_all()
add_program("streams", STREAMS, 1, 10)
add_program("streams", STREAMS, 2, 20)


def ends_with(check, part, patterns, sets, what="", **more):
    done = check.job(f"{part}{what}", 2, [check.programs / "device_program", part], sets=sets, **more)
    if done.code == 0:
        raise Failed("the job succeeded")
    check.expect_text(done, *patterns)
    verdict = done.err[done.err.find("failed after"):].splitlines()
    return {"lines": [line.strip() for line in verdict[:6]]}


MISMATCH = (r"call 3 on 'world' differs|calls do not match", r"float32 x 9")
HANG = (r"failed after", r"class: hang", r"rank 1 was in \S*pause|rank 1 has called nothing after")


def add_failures():
    def ends(check, part, patterns, sets, what=""):  # stand-ins do no work that takes time
        return ends_with(check, part, patterns, sets, what, timeout_s=2 if check.stands_in else 4)

    for part, what in (("abort", "an abort ends the kernel"), ("deadline", "an operation's own time ends it")):
        step(part, f"{what}, 2 ranks over nccl", 20, several=True, needs="operations-2")(
            lambda check, part=part: program(check, part, 2))
        step(f"staging-{part}", f"{what}, by staging", 15, needs="staging-shm")(
            lambda check, part=part: program(check, part, 2, name=f"staging-{part}", sets=STAGING))
    for part, what, patterns in (("mismatch", "ranks that call different sums are named", MISMATCH),
                                 ("hang", "a rank that stands still is named", HANG)):
        step(part, f"{what}, over nccl", 20, several=True, needs="operations-2")(
            lambda check, part=part, patterns=patterns: ends(check, part, patterns, DEVICE_BACKEND))
        step(f"staging-{part}", f"{what}, by staging", 20, needs="staging-shm")(
            lambda check, part=part, patterns=patterns: ends(check, part, patterns, STAGING, "-staging"))


add_failures()
add_staging("operations", OPERATIONS, "gloo", 20)
add_staging("operations", OPERATIONS, "ucx", 20)
add_program("operations", OPERATIONS, 4, 20, "operations-2")
add_program("refusals", "what is refused has its text", 1, 10)


@step("plugin-cuda", "the device plugin passes its conformance profile", 20, device=False)
def plugin_cuda(check):
    return conformance(check, check.plugin("device", "cuda"), "--profile", "devices", needs_device=True)


@step("plugin-nccl", "the nccl plugin loads as the rules say", 15, device=False)
def plugin_nccl(check):
    return conformance(check, check.plugin("backend", "nccl"), "--only", r"^Load\.")


def conformance(check, plugin, *arguments, needs_device=False):
    done = check.run("conformance", [check.prefix / "bin/dtrun-conformance", "--plugin", plugin, "--world", "2", *arguments])
    found = re.search(r"(\d+) passed, (\d+) failed, (\d+) skipped", done.out)
    if done.code != 0 or not found:
        raise Failed(next(iter(re.findall(r"^FAILED .*", done.out, re.MULTILINE)), cause(done)))
    if needs_device and not check.device:
        raise Skipped(f"{found[1]} cases passed, and the others need a device: {check.reason}")
    return dict(zip(("passed", "failed", "skipped"), map(int, found.groups())))


@step("library", "nccl's tests over the real library, as far as they need no device", 20, device=False)
def library(check):
    return unit_tests(check, "nccl_library_test")


def unit_tests(check, program):
    file = check.programs / program
    if not file.exists():
        raise Skipped(f"the pack has no {program}")
    if not check.machine["nccl"]:
        raise Skipped("there is no NCCL")
    if check.stands_in:
        raise Skipped(check.reason)
    done = check.run(program, [file], DTRUN_NCCL_PLUGIN=str(check.plugin("backend", "nccl")))
    counts = {word: len(re.findall(rf"^\[ +{word} +\] \S+ \(", done.out, re.MULTILINE)) for word in ("OK", "FAILED", "SKIPPED")}
    if done.code != 0:
        failed = re.search(r"^\[ +FAILED +\] (\S+) \(", done.out, re.MULTILINE)
        raise Failed(f"{failed[1] if failed else cause(done)}, exit code {done.code}")
    if counts["OK"] == 0:
        raise Skipped(next(iter(re.findall(r"Skipped\n(.+)", done.out)), "all cases were skipped"))
    return counts


@step("abi", "what dtrun declares of NCCL and CUDA is what their headers say", 20, device=False)
def abi(check):
    if not check.machine["g++"]:
        raise Skipped("there is no g++")
    folders = [*([Path(check.machine["nccl"]).parents[1] / "include"] if check.machine["nccl"] else []), *check.machine["cuda_headers"]]
    missing = [name for name in ("nccl.h", "cuda.h", "crt/host_defines.h", "nv/target")
               if not any((Path(folder) / name).exists() for folder in [*folders, "/usr/include"])]
    if missing:
        raise Skipped(f"there is no {missing[0]}; a CUDA toolkit and pip's nvidia-nccl have all of them")
    done = check.run("abi", ["g++", "-std=c++20", "-fsyntax-only", f"-I{check.pack}/source", *(word for folder in folders for word in ("-isystem", folder)),
                             check.pack / "source/plugins/nccl/testing/abi_test.cc"])
    check.expect_code(done)
    return {"headers": [str(folder) for folder in folders]}


@step("plugin-level", "every operation of the plugin on one, two and three ranks of the device", 25, several=True, needs="operations-2")
def plugin_level(check):
    return unit_tests(check, "nccl_device_test")


@step("doctor", "dtrun doctor: GPUs, NVML, the peer trial", 15)
def doctor(check):
    config = check.out / "doctor.toml"
    config.write_text('[job]\ncommand = ["true"]\n[backend]\nname = "nccl"\n[backend.nccl]\nrdma = "off"\n')
    done = check.run("doctor", [check.dtrun, "doctor", "--config", config])
    check.expect_text(done, r"backend nccl +NCCL \d")
    return {"lines": [line.strip() for line in done.out.splitlines() if re.search(r"gpu|nccl|p2p|peer", line, re.IGNORECASE)]}


@step("plan", "dtrun plan: who carries device memory, and why", 10)
def plan(check):
    done = check.run("plan", [check.dtrun, "plan", "-n", "2", *(word for item in DEVICE_BACKEND for word in ("--set", item)), "--", "true"])
    check.expect_text(done, r"cuda memory: nccl \(NCCL")
    return {"lines": [line.strip() for line in done.out.splitlines() if re.search(r"memory: |NCCL_|DTRUN_P2P", line)]}


@step("compile", "dtrun-train compiles against this machine's torch", 60, torch=True)
def compile_trainer(check):
    return training.finish_compiling(check)


def add_training():
    for model in ("mlp", "cnn"):
        step(f"train-{model}", f"DataParallel of the {model} on the device has the loss of the CPU", 20, several=True, needs="compile")(
            lambda check, model=model: training.compare(check, model, DEVICE_BACKEND))
    step("train-staging", "the same over staging, mlp", 20, needs="compile")(
        lambda check: training.compare(check, "mlp", STAGING))


add_training()
