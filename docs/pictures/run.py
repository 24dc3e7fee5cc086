"""The life of a run."""

WIDTH, HEIGHT = 800, 470
TITLE = ("The life of a run. dtrun reads the config, agents start on the hosts, and dtrun tests the networks between them. "
         "Each host reports which backends work there. Ranks start and run. The first failure ends all of them and leads to the verdict.")

STEPS = [
    ("read the config", "file, then variables, then --set; all problems at once", "dtrun", "exit code 2: nothing was started"),
    ("hosts join", "ssh, srun or you start an agent on each", "dtrun", "after cluster.join_timeout: which hosts are missing, and why"),
    ("test the networks", "between each pair of hosts", "dtrun", "exit code 2: which hosts cannot connect"),
    ("ask every host", "which of the backends work there", "dtrun", "exit code 2: the host, and what it lacks"),
    ("start the ranks", "environment, binding, MASTER_ADDR, MASTER_PORT", "rank", ""),
    ("run", "output, logs, signals, hangs", "rank", "a rank fails: the others get SIGTERM, after job.grace SIGKILL"),
    ("clean up", "no process, socket or segment is left", "dtrun", ""),
    ("verdict", "exit code and class; the first failure, what to do", "dtrun", "a cause in restart.on: again, restart.max times"),
]


def draw(p):
    for at, (step, what, kind, else_) in enumerate(STEPS):
        y = 20 + 55 * at
        p.box(20, y, 360, 42, f"{step}\n{what}", kind)
        if at:
            p.line([(200, y - 13), (200, y)])
        if else_:
            p.line([(380, y + 21), (410, y + 21)], "failed", dashed=True)
            p.text(420, y + 26, else_, "small")
