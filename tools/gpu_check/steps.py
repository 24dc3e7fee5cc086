"""The steps of a run, in their order. Each is a function that returns facts, or raises Skipped or Failed."""

import json
import re
import shutil

import training
from check import DEVICE_BACKEND, Failed, Skipped, cause, last_line

STEPS = []


def step(name, what, device=True, several=False):
    """`device`: it needs one. `several`: it needs an NCCL that joins processes."""

    def add(function):
        STEPS.append({"name": name, "what": what, "device": device, "several": several, "run": function})
        return function

    return add


@step("identity", "which NCCL and CUDA these are", device=False)
def identity(check):
    check.reason = "the libraries could not be asked"
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


@step("library", "nccl's tests over the real library, as far as they need no device", device=False)
def library(check):
    return unit_tests(check, "nccl_library_test", 60)


def unit_tests(check, program, limit_s):
    file = check.programs / program
    if not file.exists():
        raise Skipped(f"the pack has no {program}")
    if not check.machine["nccl"]:
        raise Skipped("there is no NCCL")
    if check.stands_in:
        raise Skipped(check.reason)
    done = check.run(program, [file], limit_s)
    counts = {word: len(re.findall(rf"^\[ +{word} +\] \S+ \(", done.out, re.MULTILINE)) for word in ("OK", "FAILED", "SKIPPED")}
    if done.code != 0:
        failed = re.search(r"^\[ +FAILED +\] (\S+) \(", done.out, re.MULTILINE)
        raise Failed(f"{failed[1] if failed else cause(done)}, exit code {done.code}")
    if counts["OK"] == 0:
        raise Skipped(next(iter(re.findall(r"Skipped\n(.+)", done.out)), "all cases were skipped"))
    return counts


@step("plugin-cuda", "the device plugin passes its conformance profile", device=False)
def plugin_cuda(check):
    return conformance(check, check.plugin("device", "cuda"), "--profile", "devices", needs_device=True)


@step("plugin-nccl", "the nccl plugin loads as the rules say", device=False)
def plugin_nccl(check):
    return conformance(check, check.plugin("backend", "nccl"), "--only", r"^Load\.")


def conformance(check, plugin, *arguments, needs_device=False):
    done = check.run("conformance", [check.prefix / "bin/dtrun-conformance", "--plugin", plugin, "--world", "2", *arguments], 100)
    found = re.search(r"(\d+) passed, (\d+) failed, (\d+) skipped", done.out)
    if done.code != 0 or not found:
        raise Failed(next(iter(re.findall(r"^FAILED .*", done.out, re.MULTILINE)), cause(done)))
    if needs_device and not check.device:
        raise Skipped(f"{found[1]} cases passed, and the others need a device: {check.reason}")
    return dict(zip(("passed", "failed", "skipped"), map(int, found.groups())))


@step("doctor", "dtrun doctor: GPUs, NVML, the peer trial")
def doctor(check):
    config = check.out / "doctor.toml"
    config.write_text('[job]\ncommand = ["true"]\n[backend]\nname = "nccl"\n[backend.nccl]\nrdma = "off"\n')
    done = check.run("doctor", [check.dtrun, "doctor", "--config", config], 60)
    check.expect_text(done, r"backend nccl +NCCL \d")
    return {"lines": [line.strip() for line in done.out.splitlines() if re.search(r"gpu|nccl|p2p|peer", line, re.IGNORECASE)]}


@step("plan", "dtrun plan: who carries device memory, and why")
def plan(check):
    done = check.run("plan", [check.dtrun, "plan", "-n", "2", *(word for item in DEVICE_BACKEND for word in ("--set", item)), "--", "true"], 60)
    check.expect_text(done, r"cuda memory: nccl \(NCCL")
    return {"lines": [line.strip() for line in done.out.splitlines() if re.search(r"memory: |NCCL_|DTRUN_P2P", line)]}


@step("plugin-level", "every operation of the plugin on one, two and three ranks of the device", several=True)
def plugin_level(check):
    return unit_tests(check, "nccl_device_test", 90)


def program(check, what, ranks, **more):
    done = check.job(f"{what}-{ranks}", ranks, [check.programs / "device_program", what], **more)
    check.expect_code(done)
    return {"lines": said_by_ranks(done)}


def said_by_ranks(done):
    return [re.sub(r"^\[\d+\] ", "", line) for line in done.out.splitlines()]


def add_programs():
    """device_program, part by part, over nccl and over staging."""
    for ranks in (1, 2, 4):
        step(f"operations-{ranks}", f"every operation and type on {ranks} rank{'s' * (ranks > 1)} of the device", several=ranks > 1)(
            lambda check, ranks=ranks: program(check, "operations", ranks, limit_s=75))
    for part, what in (("streams", "work of several streams is ordered"), ("refusals", "what is refused has its text"),
                       ("capture", "an operation in a graph")):
        for ranks in (1, 2):
            step(f"{part}-{ranks}", f"{what}, {ranks} rank{'s' * (ranks > 1)}", several=ranks > 1)(
                lambda check, part=part, ranks=ranks: program(check, part, ranks, limit_s=45))
    for part, what in (("abort", "an abort ends the kernel"), ("deadline", "an operation's own time ends it")):
        step(part, what, several=True)(lambda check, part=part: program(check, part, 2, limit_s=40))


add_programs()


def ends_with(check, part, patterns, sets, what="", **more):
    done = check.job(f"{part}{what}", 2, [check.programs / "device_program", part], sets=sets, **more)
    if done.code == 0:
        raise Failed("the job succeeded")
    check.expect_text(done, *patterns)
    verdict = done.err[done.err.find("failed after"):].splitlines()
    return {"lines": [line.strip() for line in verdict[:6]]}


MISMATCH = (r"call 3 on 'world' differs|calls do not match", r"float32 x 9")
HANG = (r"failed after", r"class: hang", r"rank 1 was in \S*pause|rank 1 has called nothing after")


@step("mismatch", "ranks that call different sums are named", several=True)
def mismatch(check):
    return ends_with(check, "mismatch", MISMATCH, DEVICE_BACKEND, limit_s=45)


@step("hang", "a rank that stands still is named", several=True)
def hang(check):
    return ends_with(check, "hang", HANG, [*DEVICE_BACKEND, "backend.timeout=4s"], limit_s=45)


def add_staging():
    ways = {"shm": ["backend.name=cpu:gloo,cuda:gloo"], "gloo": ["backend.name=cpu:gloo,cuda:gloo", "comm.local=none"],
            "ucx": ["backend.name=cpu:ucx,cuda:ucx", "comm.local=none"]}
    for way, sets in ways.items():
        def run(check, way=way, sets=sets):
            if not check.plugin("backend", sets[0].split(":")[-1]).exists():
                raise Skipped(f"the pack has no {way}")
            facts = program(check, "operations", 2, sets=sets, limit_s=60)
            check.expect_text(check.last, rf"carried by staging over {way}")
            facts["lines"] += program(check, "streams", 2, sets=sets, limit_s=40)["lines"]
            return facts
        step(f"staging-{way}", f"every operation, and streams, by staging over {way}, 2 ranks")(run)

    for part, what in (("abort", "an abort over staging"), ("deadline", "an operation's own time over staging")):
        step(f"staging-{part}", what)(lambda check, part=part: program(check, part, 2, sets=ways["shm"], limit_s=40))
    for part, patterns in (("mismatch", MISMATCH), ("hang", HANG)):
        step(f"staging-{part}", f"the same named over staging: {part}")(
            lambda check, part=part, patterns=patterns: ends_with(
                check, part, patterns, [*ways["shm"], "backend.timeout=4s"], what="-staging", limit_s=45))


add_staging()


@step("compile", "dtrun-train compiles against this machine's torch", device=False)
def compile_trainer(check):
    return training.finish_compiling(check)


def add_training():
    for model in ("mlp", "cnn"):
        step(f"train-{model}", f"DataParallel of the {model} on the device has the loss of the CPU", several=True)(
            lambda check, model=model: training.compare(check, model, DEVICE_BACKEND))
    step("train-staging", "the same over staging, mlp")(
        lambda check: training.compare(check, "mlp", ["backend.name=cpu:gloo,cuda:gloo"]))


add_training()


@step("ddp", "a Python DDP script on nccl under dtrun, 2 ranks", several=True)
def ddp(check):
    if not check.machine["torch"]:
        raise Skipped("no interpreter here has torch")
    shutil.copy(check.pack / "gpu_check/ddp_nccl.py", check.out / "ddp_nccl.py")
    # torch brings the libraries it wants.
    done = check.job("ddp", 2, ["env", "-u", "LD_LIBRARY_PATH", check.machine["python"], check.out / "ddp_nccl.py"], limit_s=90,
                     NCCL_SOCKET_IFNAME="=lo", NCCL_IB_DISABLE="1")
    check.expect_code(done)
    check.expect_text(done, r"rank 0 of 2 agrees", r"rank 1 of 2 agrees")
    return {"lines": said_by_ranks(done)}


GOAL, GOAL_BYTES, ENQUEUE_GOAL_US = 0.99, 1 << 20, 2.0


def beside_nccl(check, ranks, seconds, sizes):
    done = check.job(f"bench-{ranks}", ranks, [check.programs / "beside_nccl", "0", str(seconds), *map(str, sizes)], limit_s=75)
    check.expect_code(done)
    rows = [json.loads(line) for line in said_by_ranks(done) if line.startswith("{")]
    table = {}
    for row in rows:
        table.setdefault(row["bytes"], {})[row["layer"]] = row
    bare = "bare" if any("bare" in layers for layers in table.values()) else "bare, not blocking"
    ratios = {size: layers[bare]["median_us"] / layers["dtrun"]["median_us"] for size, layers in table.items() if bare in layers}
    enqueue = {size: layers["dtrun"]["enqueue_us"] - layers[bare]["enqueue_us"] for size, layers in table.items() if bare in layers}
    if not ratios:
        raise Failed(f"no bare NCCL beside it: {last_line(done.err)}")
    large = [ratio for size, ratio in ratios.items() if size >= GOAL_BYTES]
    return {"rows": rows, "beside": bare, "ratio": ratios, "enqueue_overhead_us": enqueue,
            "goal_met": bool(large) and min(large) >= GOAL, "enqueue_goal_met": min(enqueue.values()) <= ENQUEUE_GOAL_US}


@step("bench-1", "allreduce beside NCCL's own, in turns, 1 rank")
def bench_one(check):
    if check.stands_in:  # to see that it runs; the figures mean nothing
        return beside_nccl(check, 1, 0.1, [8, 4096, 1 << 20])
    return beside_nccl(check, 1, 1.5, [8, 4096, 65536, 1 << 20, 8 << 20, 64 << 20, 256 << 20])


@step("bench-2", "the same, 2 ranks of the device", several=True)
def bench_two(check):
    return beside_nccl(check, 2, 2, [8, 65536, 1 << 20, 8 << 20, 64 << 20])
