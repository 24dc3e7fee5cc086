"""The table of a run, and its JSON."""

import json
import textwrap

WIDTH, INDENT = 150, 39
ONE_DEVICE = ("All ranks share one device: NCCL takes them for ranks of several hosts (NCCL_HOSTID) and goes over sockets. "
              "P2P, NVLink, RDMA and several devices are not shown here.")


def line_of(step):
    note = f", because {step['because']}" if step.get("because") else ""
    return f"{step['name']:28} {step.get('seconds', 0):6.1f} s  {step['result']}{note}"


def shown(facts):
    """Facts as a few lines."""
    lines = [str(line) for line in facts.get("lines", [])][:12]
    rest = {key: value for key, value in facts.items() if key not in ("lines", "rows", "rates", "limits", "nccl_says")}
    if rest and "rows" not in facts:
        lines.append(json.dumps(rest))
    if facts.get("nccl_says"):
        lines.append("NCCL says: " + "; ".join(facts["nccl_says"]))
    if "rows" in facts:
        lines.append(facts["over"])
        lines.append(f"{'bytes':>10} {'what':4} {'layer':20} {'median us':>11} {'min us':>11} {'enqueue us':>11} {'samples':>8}")
        lines += [f"{row['bytes']:>10} {row['reduce']:4} {row['layer']:20} {row['median_us']:>11.2f} {row['min_us']:>11.2f} "
                  f"{row['enqueue_us']:>11.2f} {row['samples']:>8}" for row in facts["rows"]]
        lines.append(f"rate beside '{facts['beside']}': " + ", ".join(f"{key} {ratio:.3f}" for key, ratio in facts["ratio"].items())
                     + f"; goal 0.99 from 1 MiB on: {'met' if facts['goal_met'] else 'missed'}")
        lines.append(f"a call's time beyond it: {min(facts['enqueue_overhead_us'].values()):.2f} us; goal 2 us: "
                     f"{'met' if facts['enqueue_goal_met'] else 'missed'}")
    return lines


def device_of(report):
    if report["machine"]["driver"]:
        return report["machine"]["driver"]
    cuda = report["device"] or {}
    return f"{cuda['devices']} of CUDA {cuda['driver']}" if cuda.get("devices") else cuda.get("error") or "none"


def text_of(report):
    machine = report["machine"]
    lines = [f"gpu-check of dtrun {report['pack']['commit']} on {machine['host']}: {report['summary']}",
             f"  device  {device_of(report)}",
             f"  nccl    {machine['nccl'] or 'none'}", f"  cuda    {machine['cudart'] or 'none'}",
             f"  torch   {machine['torch_version'] or 'none'}, Python {machine['python_version']}, glibc {machine['glibc']}"
             + (f", with {' and '.join(report['own'])}" if report["own"] else ""), f"  {ONE_DEVICE}", ""]
    for step in report["steps"]:
        lines += textwrap.wrap(line_of(step), WIDTH, subsequent_indent=" " * INDENT, break_long_words=False) or [""]
        if step["result"] == "ok":
            lines += [f"{'':{INDENT}}{line[:WIDTH]}" for line in shown(step.get("facts") or {})]
    return "\n".join(lines) + "\n"


def write(report, folder):
    for name, text in (("report.json", json.dumps(report, indent=1) + "\n"), ("report.txt", text_of(report))):
        (folder / f"{name}.new").write_text(text)
        (folder / f"{name}.new").replace(folder / name)
