"""Generations and restarts."""

WIDTH, HEIGHT = 800, 390
TITLE = ("With restart.max = 1 and cluster.min_hosts = 2. In generation 0 a rank of node2 fails; all ranks end and restart as "
         "generation 1, with a new port, store and logs. Then node2 leaves; the others regroup as generation 2 and finish.")
COLUMNS, WIDE = (90, 325, 560), 220


def draw(p):
    for at, x in enumerate(COLUMNS):
        p.text(x + WIDE / 2, 32, f"generation {at}", "strong", "middle")
    for row in range(3):
        p.text(20, 79 + 66 * row, f"node{row}", "strong")
        for at, x in enumerate(COLUMNS):
            text, kind = f"ranks {2 * row}, {2 * row + 1}\n{('SIGTERM', 'SIGTERM', 'exit with 0')[at]}", "rank"
            if row == 2:
                text, kind = [("ranks 4, 5\nrank 5 exits with 1", "failed"), ("ranks 4, 5\nleaves: SIGTERM to its dtrun", "failed"),
                              ("not there\nmay join later: generation 3", "plain")][at]
            p.box(x, 50 + 66 * row, WIDE, 48, text, kind)
    for at in (0, 1):
        p.line([(COLUMNS[at] + WIDE, 140), (COLUMNS[at + 1], 140)], "dtrun")
    for at, then in enumerate(("a restart (restart.max = 1)", "regrouped: does not count", "the job succeeds")):
        p.box(COLUMNS[at], 262, WIDE, 66, f"DTRUN_GENERATION={at}\nits own port, store and logs\nthen {then}", "dtrun")
    p.text(20, 354, "restart.max = 1, cluster.min_hosts = 2, connect = \"manual\". All ranks restart; hosts keep their numbers. Ranks", "small")
    p.text(20, 372, "load their own checkpoint. Logs of the restarts are in generation-1/ and generation-2/.", "small")
