"""Slurm on the hosts of a laboratory: Debian's slurmctld, a slurmd on each host, and munge.

Everything lives in the laboratory's folder and dies with this process. Every host has a name and a network of
its own, so the daemons run as they would on real nodes.
"""

import os
import subprocess
from pathlib import Path

from support.job import until
from support.lab import die_with_parent, find

NEEDED = ["munged", "slurmctld", "slurmd", "srun", "salloc", "sbatch"]
CPUS = 4  # that each node claims to have


def why_not():
    missing = [name for name in NEEDED if find(name) is None]
    return f"{', '.join(missing)} are not installed (tools/setup test)" if missing else ""


class Slurm:
    def __init__(self, lab):
        self.lab, self.folder = lab, lab.folder / "slurm"
        self.folder.mkdir(mode=0o755)
        self.start_munge()
        self.configure()
        self.daemon(0, "slurmctld")
        for i in range(len(lab.names)):
            self.daemon(i, "slurmd")
        until(lambda: self.states() == {"idle"}, f"all nodes to be idle; {self.states()}")

    def start_munge(self):
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        socket = self.folder / "munge.socket"
        self.start(None, find("munged"), "--foreground", "--force", f"--key-file={key}", f"--socket={socket}",
                   f"--pid-file={self.folder}/munge.pid", f"--log-file={self.folder}/munge.log",
                   f"--seed-file={self.folder}/munge.seed")
        until(socket.exists, "munged")

    def configure(self):
        (self.folder / "slurm.conf").write_text(
            f"ClusterName=lab\nSlurmctldHost={self.lab.names[0]}\nSlurmUser=root\n"
            f"AuthType=auth/munge\nAuthInfo=socket={self.folder}/munge.socket\nCredType=cred/munge\n"
            f"StateSaveLocation={self.folder}/state\nSlurmdSpoolDir={self.folder}/spool-%n\n"
            f"SlurmctldPidFile={self.folder}/slurmctld.pid\nSlurmdPidFile={self.folder}/slurmd-%n.pid\n"
            "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nMpiDefault=none\nReturnToService=2\n"
            "SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\nSlurmdParameters=config_overrides\n"
            "SchedulerParameters=sched_interval=1,batch_sched_delay=0\nKillWait=5\n"
            f"NodeName={self.lab.names[0]}{''.join(',' + n for n in self.lab.names[1:])} CPUs={CPUS} State=UNKNOWN\n"
            "PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n")

    def daemon(self, host, name):
        folder = self.folder / "state"
        folder.mkdir(exist_ok=True)
        self.start(host, find(name), "-D", "-f", str(self.folder / "slurm.conf"))

    def start(self, host, *words):
        before = [] if host is None else self.lab.enter(host)
        log = (self.folder / f"{Path(words[0]).name}-{host}.log").open("w")
        self.lab.processes.append(subprocess.Popen([*before, *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                   env=self.environment(os.environ), preexec_fn=die_with_parent))

    def environment(self, base):
        return {**base, "SLURM_CONF": str(self.folder / "slurm.conf")}

    def states(self):
        return set(self.ask("sinfo", "-h", "-o", "%t").split())

    def cancel_all(self):
        """Ends every job, and waits until its nodes are free."""
        self.ask("scancel", "--user=root")
        until(lambda: self.states() == {"idle"} and not self.ask("squeue", "-h").strip(), "all nodes to be idle")

    def ask(self, *words):
        return subprocess.run([*self.lab.enter(0), *words], capture_output=True, text=True,
                              env=self.environment(os.environ)).stdout
