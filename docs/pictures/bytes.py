"""Where bytes go."""

WIDTH, HEIGHT = 800, 400
TITLE = ("Where bytes go in programs that call dtrun's library. Ranks of one host combine their data in shared memory. The leader "
         "of each host exchanges the result with the other leaders by the backend, over the network that dtrun has tested. With "
         "GPU memory, or comm.local = none, all ranks use the backend.")


def draw(p):
    for x, host, ranks in ((20, "node0", (0, 1, 2)), (440, "node1", (3, 4, 5))):
        p.panel(x, 20, 340, 240, host)
        for at, rank in enumerate(ranks):
            leader = at == 0
            p.box(x + 20 + 105 * at, 55, 90, 48, f"rank {rank}\nleader" if leader else f"rank {rank}", "rank")
            p.line([(x + 65 + 105 * at, 103), (x + 65 + 105 * at, 135)], "rank", both=True)
        p.box(x + 20, 135, 300, 46, "shared memory\ncomm.local = \"shm\": sums of this host", "rank")
        p.line([(x + 65, 181), (x + 65, 205)], "wire", both=True)
        p.box(x + 20, 205, 300, 42, "backend of the leader\ngloo, ucx or mpi", "wire")
        p.line([(x + 170, 247), (x + 170, 290)], "wire", both=True)
    p.box(40, 290, 720, 44, "wire: the network that dtrun tested between all hosts\nnetwork.interface; MASTER_ADDR and the "
          "libraries' variables point to it", "wire")
    p.text(20, 358, "One host: shared memory only. GPU memory (nccl) or comm.local = \"none\": every rank calls the backend.", "small")
    p.text(20, 378, "Scripts with torch.distributed, Horovod or MPI bring their own transport; dtrun sets its variables to the same "
           "network.", "small")
