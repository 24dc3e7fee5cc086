"""The torch steps: trials of dtrun's backend on CUDA tensors, and DDP over each backend."""

import re
import shutil

from check import DEVICE_BACKEND, ON_CPU, STAGING, Failed, Skipped, cause, said_by_ranks
from registry import step

SPARE_S = 6  # of a step's limit: a hanging step prints its stacks before it is ended


def start(check, script, name, ranks, words, sets, **more):
    if not check.machine["torch"]:
        raise Skipped("no interpreter here has torch")
    if check.device and not check.stands_in:
        more["WANTS_CUDA"] = "1"
    elif check.rehearse:
        sets = ON_CPU
    else:
        raise Skipped("torch needs a device that is none of the stand-ins'")
    shutil.copy(check.pack / "gpu_check" / script, check.out / script)
    done = check.torch_job(name, ranks, [check.out / script, *words, str(max(check.left() - SPARE_S, 5))], sets=sets, **more)
    stood = re.findall(rf'File "\S*{script}", line (\d+) in (\w+)', done.text) if "Timeout (" in done.text else []
    if stood:  # a rank reached its own time limit and printed the stacks of its threads
        raise Failed(f"it stood still in {' of '.join(dict.fromkeys(f'{function} (line {line})' for line, function in stood[:3]))}")
    check.expect_code(done)
    return done


def trial(check, name, trial_name, ranks, sets, **more):
    done = start(check, "torch_trials.py", name, ranks, [trial_name], sets, **more)
    passed = re.findall(rf"PASS {trial_name} on (.*)", done.out)
    if len(passed) != ranks:
        raise Failed(f"{len(passed)} of {ranks} ranks passed: {cause(done)}")
    facts = {"lines": said_by_ranks(done)}
    if found := check.transport(name):
        facts["nccl_says"] = found
    return facts


def add_trial(trial_name, what, route, ranks, limit, variant="", needs=None, **more):
    """`needs`: in addition to the first trial of the route."""
    over_nccl = route == "nccl"
    name = f"torch-{trial_name}{variant}-{route}" + (f"-{ranks}" if over_nccl else "")
    first = f"torch-first-{route}" + (f"-{ranks}" if over_nccl else "")
    wanted = ("operations-2" if ranks > 1 else "operations-1") if over_nccl else "staging-shm"
    step(name, f"torch: {what}, {ranks} rank{'s' * (ranks > 1)}, {route}", limit, torch=True, several=over_nccl and ranks > 1,
               needs=needs or (wanted if name == first else first))(
        lambda check: trial(check, name, trial_name, ranks, DEVICE_BACKEND if over_nccl else STAGING, **more))


def digest(check, backend, sets, ranks, name):
    if backend == "nccl" and (check.stands_in or not check.device):
        raise Skipped(check.reason)
    done = start(check, "torch_ddp.py", name, ranks, [backend], sets)
    found = re.findall(r"digest (\w+) rank", done.out)
    if len(found) != ranks or len(set(found)) != 1:
        raise Failed(f"the ranks' weights have the digests {found}: {cause(done)}")
    facts = {"digest": found[0], "lines": said_by_ranks(done)}
    if says := check.transport(name):
        facts["nccl_says"] = says
    facts["equals"] = equal_to(check.results, name, found[0])
    return facts


def equal_to(results, name, found):
    """The steps with this many ranks, if all weights have this digest; Failed otherwise."""
    ranks = name[-1]
    others = {other: result["facts"]["digest"] for other, result in results.items()
              if re.fullmatch(rf"ddp-\w+-{ranks}", other) and result["result"] == "ok" and other != name}
    differ = [other for other, digest in others.items() if digest != found]
    if differ:
        raise Failed(f"its weights, {found}, differ from those of {differ[0]}, {others[differ[0]]}")
    return sorted(others)


def add_ddp(route, backend, sets, ranks, limit, needs):
    name = f"ddp-{route}-{ranks}"
    step(name, f"DDP over {backend if backend == route else f'dtrun, {route}'} has the weights of the others, {ranks} rank{'s' * (ranks > 1)}",
               limit, torch=True, several=route == "nccl" or (route == "dtrun" and ranks > 1), needs=needs)(
        lambda check: digest(check, backend, sets, ranks, name))


def add_all():
    add_trial("first", "the group and a sum", "staging", 2, 45)
    for name, what in (("order", "data behind delaying kernels is summed"), ("free", "cudaFree beside a sum"),
                         ("pin", "pinned memory is taken beside a sum"), ("lazy", "libraries load beside a sum"),
                         ("malloc", "cudaMalloc beside a sum"), ("sync", "a wait for the device beside a sum"),
                         ("streams", "sums on 64 streams"), ("messages", "24 large messages on their way"),
                         ("pieces", "sums and gathers of many sizes"), ("notready", "no error is left behind")):
        add_trial(name, what, "staging", 2, 20)
    add_trial("streams", "sums on 64 streams, one queue of the hardware", "staging", 2, 20, variant="-queue", CUDA_DEVICE_MAX_CONNECTIONS="1")
    add_ddp("gloo", "gloo", ON_CPU, 2, 20, ())
    add_ddp("staging", "dtrun", STAGING, 2, 20, "torch-first-staging")
    add_trial("first", "the group and a sum", "nccl", 2, 25)
    add_trial("graph", "a sum in a graph, each mode", "nccl", 2, 20)
    add_ddp("dtrun", "dtrun", DEVICE_BACKEND, 2, 20, "torch-first-nccl-2")
    add_ddp("nccl", "nccl", ON_CPU, 2, 20, "operations-2")
    add_trial("order", "data behind delaying kernels is summed", "nccl", 2, 20)
    add_trial("pieces", "sums and gathers of many sizes", "nccl", 2, 20)
    add_trial("streams", "sums on 64 streams", "nccl", 2, 20)
    add_trial("notready", "no error is left behind", "nccl", 2, 20)
    add_trial("first", "the group and a sum", "nccl", 1, 25)
    add_trial("order", "data behind delaying kernels is summed", "nccl", 1, 20)
    add_trial("graph", "a sum in a graph, each mode", "nccl", 1, 20)
    add_ddp("gloo", "gloo", ON_CPU, 1, 20, ())
    add_ddp("dtrun", "dtrun", DEVICE_BACKEND, 1, 20, "torch-first-nccl-1")
    add_ddp("nccl", "nccl", ON_CPU, 1, 20, ())
