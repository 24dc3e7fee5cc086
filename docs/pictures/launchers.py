"""Which launcher?"""

WIDTH, HEIGHT = 800, 430
TITLE = ("Which launcher? If your program starts its own processes on each host, per-node. If it needs mpirun's mapping or options, "
         "mpirun. If it looks for torchrun's variables, torchrun. If it looks for Slurm's variables, slurm. Else per-process.")

QUESTIONS = [
    ("does it start its own ranks on each host?", "Lightning, spawn, a launcher of your own", "per-node", "one process per host"),
    ("does it need mpirun's mapping or options?", "MPI programs as such do not", "mpirun", "Open MPI's or MPICH's"),
    ("does it look for torchrun's variables?", "TORCHELASTIC_RUN_ID, GROUP_RANK", "torchrun", "or dtrun torchrun ..."),
    ("does it look for those of Slurm's tasks?", "SLURM_PROCID, SLURM_NTASKS", "slurm", "in or outside Slurm"),
]


def draw(p):
    for at, (question, such_as, launcher, what) in enumerate(QUESTIONS):
        y = 20 + 82 * at
        p.box(20, y, 400, 56, f"{question}\n{such_as}")
        p.line([(420, y + 28), (520, y + 28)], "dtrun")
        p.text(470, y + 20, "yes", "small", "middle")
        p.box(520, y, 260, 56, f"{launcher}\n{what}", "dtrun")
        p.line([(220, y + 56), (220, y + 82)])
        p.text(232, y + 74, "no", "small")
    y = 20 + 82 * len(QUESTIONS)
    p.box(20, y, 400, 56, "per-process, the default\nRANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR ...", "rank")
    p.text(440, y + 25, "launcher.name selects it; dtrun plan shows what", "small")
    p.text(440, y + 43, "each process would get.", "small")
