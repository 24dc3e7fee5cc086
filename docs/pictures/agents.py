"""Root, agents and ranks."""

WIDTH, HEIGHT = 800, 400
TITLE = ("On node0, the host where you start dtrun, are a guard, the root with the agent of node0, and ranks 0 and 1. ssh or srun "
         "starts an agent with a guard on node1, which starts ranks 2 and 3. The root controls the agent by an encrypted link. "
         "The ranks exchange their data directly.")


def draw(p):
    p.panel(20, 20, 350, 290, "node0: where you type dtrun")
    p.box(40, 55, 130, 50, "guard\nthe one you see", "dtrun")
    p.box(200, 55, 150, 75, "root and agent\nstarts, watches,\nrestarts, reports", "dtrun")
    p.line([(170, 80), (200, 80)], "dtrun", both=True)
    p.panel(430, 20, 350, 290, "node1")
    p.box(450, 55, 130, 75, "agent\nstarts, reads and\nends the ranks", "dtrun")
    p.box(630, 55, 130, 50, "guard\nends what is left", "dtrun")
    p.line([(580, 80), (630, 80)], "dtrun", both=True)
    p.line([(350, 105), (450, 105)], "dtrun", both=True)
    p.text(400, 45, "", "small", "middle")
    p.text(400, 97, "TLS", "small", "middle")
    for x, first in ((40, 0), (450, 2)):
        p.box(x, 200, 140, 60, f"rank {first}\npython3 train.py", "rank")
        p.box(x + 170, 200, 140, 60, f"rank {first + 1}\npython3 train.py", "rank")
        p.line([(x + 140, 230), (x + 170, 230)], "rank", both=True)
        p.text(x + 155, 285, "shared memory", "small", "middle")
    p.line([(275, 130), (275, 200)], "dtrun")
    p.line([(220, 130), (220, 165), (110, 165), (110, 200)], "dtrun")
    p.line([(500, 130), (500, 200)], "dtrun")
    p.line([(550, 130), (550, 165), (690, 165), (690, 200)], "dtrun")
    p.line([(350, 230), (450, 230)], "wire", both=True)
    p.text(400, 220, "backend", "small", "middle")
    p.box(40, 330, 250, 50, "runs/train/latest\nlogs of all ranks, plan, verdict")
    p.text(310, 350, "Agents forward output and signals; what ranks send each other does not pass", "small")
    p.text(310, 368, "through them. If any process dies, the whole job is cleaned up.", "small")
