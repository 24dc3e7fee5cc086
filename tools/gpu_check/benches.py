"""The steps that measure, and the steps under compute-sanitizer."""

import json
import re

from check import DEVICE_BACKEND, STAGING, Failed, Skipped, cause, last_line, said_by_ranks
from registry import step

GOAL, GOAL_BYTES, ENQUEUE_GOAL_US = 0.99, 1 << 20, 2.0
OVER = {1: "one rank: NCCL makes a sum by a copy on the device and an average by a kernel over all elements; no link is used",
        2: "two ranks of one device: NCCL takes them for two hosts and goes over sockets, so rates say nothing of P2P, NVLink or RDMA"}


def rows_of(done):
    return [json.loads(line) for line in said_by_ranks(done) if line.startswith("{")]


def beside_nccl(check, ranks, seconds, sizes):
    done = check.job(f"bench-{ranks}", ranks, [check.programs / "beside_nccl", "0", str(seconds), *map(str, sizes)], NCCL_DEBUG="WARN")
    check.expect_code(done)
    rows = rows_of(done)
    table = {}
    for row in rows:
        table.setdefault((row["bytes"], row["reduce"]), {})[row["layer"]] = row
    bare = "bare" if any("bare" in layers for layers in table.values()) else "bare, not blocking"
    ratios = {key: layers[bare]["median_us"] / layers["dtrun"]["median_us"] for key, layers in table.items() if bare in layers}
    enqueue = {key: layers["dtrun"]["enqueue_us"] - layers[bare]["enqueue_us"] for key, layers in table.items() if bare in layers}
    if not ratios:
        raise Failed(f"no bare NCCL beside it: {last_line(done.err)}")
    large = [ratio for (size, _), ratio in ratios.items() if size >= GOAL_BYTES]
    return {"rows": rows, "beside": bare, "over": OVER[ranks], "ratio": {f"{size} B {how}": ratio for (size, how), ratio in ratios.items()},
            "enqueue_overhead_us": {f"{size} B {how}": time for (size, how), time in enqueue.items()},
            "goal_met": bool(large) and min(large) >= GOAL, "enqueue_goal_met": min(enqueue.values()) <= ENQUEUE_GOAL_US}


def rate(check):
    largest = "16" if check.stands_in else "256"
    done = check.job("rate-staging", 2, [check.programs / "device_program", "rate", "0", largest], sets=STAGING)
    check.expect_code(done)
    limits, *rows = rows_of(done)
    best = max(rows, key=lambda row: row["GBs"])
    lines = [f"copies, both ranks at once: out {limits['copy_out_GBs']:.2f} GB/s, in {limits['copy_in_GBs']:.2f} GB/s"]
    lines += [f"allreduce of {row['bytes']:>10} B: {row['us']:>10.1f} us, {row['GBs']:.2f} GB/s, {row['of_limit']:.2f} of the slower copy" for row in rows]
    return {"lines": lines, "limits": limits, "rates": rows, "best_of_limit": best["of_limit"]}


def bench_one(check):
    if check.stands_in:  # only to check that it runs; the results are meaningless
        return beside_nccl(check, 1, 0.02, [8, 1 << 20])
    return beside_nccl(check, 1, 0.8, [8, 4096, 65536, 1 << 20, 8 << 20, 64 << 20, 256 << 20])


def sanitize(check, tool, ranks, sets, part):
    program = check.machine["compute-sanitizer"]
    if not program:
        raise Skipped("there is no compute-sanitizer")
    done = check.job(f"sanitizer-{tool}-{ranks}", ranks, [program, "--tool", tool, "--print-limit", "20", check.programs / "device_program", part], sets=sets)
    if re.search(r"Device not supported|Unable to find injection|internal error", done.text):
        raise Skipped(f"compute-sanitizer says: {cause(done)}")
    counts = [int(found) for found in re.findall(r"ERROR SUMMARY: (\d+) error", done.text)]
    if len(counts) != ranks:
        raise Failed(f"{len(counts)} of {ranks} ranks have a summary: {cause(done)}")
    said = [line for line in said_by_ranks(done) if line.startswith("=====") and len(line) > 12]
    if any(counts):
        raise Failed(f"{sum(counts)} errors: {' '.join(line.strip('= ') for line in said if 'COMPUTE-SANITIZER' not in line)[:300]}")
    check.expect_code(done)
    return {"lines": said}


def add_all():
    step("rate-staging", "allreduce by staging beside the rate of copies between host and device, 2 ranks", 25, needs="staging-shm")(
        rate)
    step("bench-1", "allreduce beside NCCL's own, in turns, 1 rank", 35, needs="operations-1")(bench_one)
    step("bench-2", "the same, 2 ranks of the device", 40, several=True, needs="operations-2")(
        lambda check: beside_nccl(check, 2, 2, [8, 65536, 1 << 20, 8 << 20, 64 << 20]))
    for name, tool, ranks, sets, part, needs in (("memcheck-staging", "memcheck", 2, STAGING, "large", "staging-shm"),
                                                 ("initcheck-staging", "initcheck", 2, STAGING, "streams", "staging-shm"),
                                                 ("memcheck-nccl", "memcheck", 1, DEVICE_BACKEND, "operations", "operations-1")):
        step(name, f"compute-sanitizer's {tool} over {part}, {ranks} rank{'s' * (ranks > 1)}", 30, needs=needs)(
            lambda check, tool=tool, ranks=ranks, sets=sets, part=part: sanitize(check, tool, ranks, sets, part))
