"""Two steps of a real job, from trace.json: events that `dtrun trace` wrote of it."""

import json
from pathlib import Path

WIDTH, HEIGHT = 800, 368
TITLE = ("Two ranks over gloo. In each of two steps a rank computes and starts three allreduces, then waits for them. Rank 1 computes "
         "longer, so rank 0 waits until rank 1 has called.")
LEFT, RIGHT, TALL = 128, 788, 30


def draw(p):
    traced = json.loads((Path(__file__).parent / "trace.json").read_text(encoding="utf-8"))
    scale = (RIGHT - LEFT) / traced["span_us"]
    for rank in (0, 1):
        top = 12 + 164 * rank
        p.panel(8, top, WIDTH - 16, 156, f"rank {rank}")
        own = [event for event in traced["events"] if event["rank"] == rank]
        lanes = sorted({event["lane"] for event in own})
        for row, lane in enumerate(lanes):
            y = top + 32 + TALL * row
            p.text(20, y + 17, "the thread" if row == 0 else "in flight", "small")
            for event in (event for event in own if event["lane"] == lane):
                x = LEFT + scale * event["ts"]
                if event["ph"] == "i":  # a mark where it was started
                    p.parts.append(f'<rect class="failed" x="{x - 1:g}" y="{y + 2:g}" width="2" height="{TALL - 10}"/>')
                    continue
                wide = max(1.5, scale * event["dur"])
                kind = "wire" if event["name"].startswith("wait") else "rank"
                p.parts.append(f'<rect class="{kind}" x="{x:g}" y="{y + 2:g}" width="{wide:g}" height="{TALL - 8}" rx="3"/>')
                size = f"{event['bytes'] // 1024:,} KiB"
                for label in ("wait",) if kind == "wire" else (f"allreduce, {size}", size):
                    if wide > 6.5 * len(label) + 8:
                        p.text(x + wide / 2, y + 17, label, "small", "middle")
                        break
    for at in range(0, int(traced["span_us"]), 10000):
        p.text(LEFT + scale * at, HEIGHT - 14, f"{at // 1000} ms", "small", "middle")
    p.text(RIGHT - 8, 34, "red: a call starts; yellow: the thread waits for it", "small", "end")
