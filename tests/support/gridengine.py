"""Grid Engine on the hosts of a laboratory: Debian's qmaster, and an execd on each host.

Everything lives in the laboratory's folder and dies with this process: a root of its own, with links to what the packages
have installed.
"""

import os
import re
import subprocess
from pathlib import Path

from support.job import until
from support.lab import die_with_parent, find, run

INSTALLED, TOOLS, SHARED = (Path(path) for path in (
    "/var/lib/gridengine", "/usr/lib/gridengine", "/usr/share/gridengine"))
SLOTS = 4  # that each host claims to have
PORTS = {"SGE_QMASTER_PORT": "16444", "SGE_EXECD_PORT": "16445"}
ENVIRONMENT = "mpi"  # the parallel environment


def why_not():
    missing = [name for name in ("sge_qmaster", "sge_execd", "qsub", "qrsh") if find(name) is None]
    if not missing and not (TOOLS / "spoolinit").exists():
        missing = [str(TOOLS / "spoolinit")]
    return f"{', '.join(missing)} are not installed (tools/setup test)" if missing else ""


class GridEngine:
    def __init__(self, lab):
        self.lab, self.root = lab, lab.folder / "gridengine"
        common = self.root / "default/common"
        common.mkdir(parents=True)
        for folder in ("bin", "lib", "util", "utilbin"):
            (self.root / folder).symlink_to(INSTALLED / folder)
        self.spool = self.folder("spool")
        (common / "act_qmaster").write_text(f"{lab.names[0]}\n")
        (common / "bootstrap").write_text(
            "admin_user none\ndefault_domain none\nignore_fqdn true\nspooling_method classic\nspooling_lib libspoolc\n"
            f"spooling_params {common};{self.spool}/qmaster\nbinary_path /usr/sbin\nqmaster_spool_dir {self.spool}/qmaster\n"
            "security_mode none\nlistener_threads 2\nworker_threads 2\nscheduler_threads 1\n")
        self.initialise(common)
        self.daemon(0, "sge_qmaster")
        until(lambda: self.ask("qconf", "-sss").returncode == 0, "qmaster to answer")
        for name in lab.names:
            self.must("qconf", "-ah", name)
            self.must("qconf", "-as", name)
        self.add_queue()
        for i in range(len(lab.names)):
            self.daemon(i, "sge_execd")
        until(lambda: self.ready() == len(lab.names), f"all queues to be ready: {self.ask('qstat', '-f').stdout}")

    def folder(self, name):
        folder = self.root / name
        folder.mkdir()
        return folder

    def initialise(self, common):
        (self.spool / "qmaster").mkdir()
        text = (SHARED / "default-configuration").read_text()
        for key, value in {"execd_spool_dir": self.folder("execd"), "min_uid": 0, "min_gid": 0, "load_report_time": "00:00:01",
                           "mailer": "/bin/true"}.items():
            text = re.sub(rf"(?m)^{key}\s.*$", f"{key} {value}", text)
        (self.root / "configuration").write_text(text)
        tools = [("spoolinit", "classic", "libspoolc", f"{common};{self.spool}/qmaster", "init"),
                 ("spooldefaults", "configuration", self.root / "configuration"),
                 ("spooldefaults", "complexes", SHARED / "util/resources/centry"),
                 ("spooldefaults", "usersets", SHARED / "util/resources/usersets"),
                 ("spooldefaults", "managers", "root")]
        for tool, *words in tools:
            run(*self.lab.enter(0), "env", *(f"{k}={v}" for k, v in self.own().items()), TOOLS / tool, *words)

    def add_queue(self):
        pe = self.root / "pe"
        pe.write_text(f"pe_name {ENVIRONMENT}\nslots 999\nuser_lists NONE\nxuser_lists NONE\nstart_proc_args NONE\n"
                      "stop_proc_args NONE\nallocation_rule $round_robin\ncontrol_slaves TRUE\njob_is_first_task FALSE\n"
                      "urgency_slots min\naccounting_summary FALSE\nqsort_args NONE\n")
        self.must("qconf", "-Ap", pe)
        text = self.must("qconf", "-sq").stdout
        # The hosts of the laboratory share /tmp, and a task that ends removes its job's folder there.
        own = "".join(f",[{name}={self.folder(f'tmp-{name}')}]" for name in self.lab.names)
        for key, value in {"tmpdir": f"/tmp{own}", "qname": "all.q", "hostlist": " ".join(self.lab.names), "slots": SLOTS, "pe_list": ENVIRONMENT,
                           "shell": "/bin/sh", "load_thresholds": "NONE"}.items():
            text = re.sub(rf"(?m)^{key}\s.*$", f"{key} {value}", text)
        queue = self.root / "queue"
        queue.write_text(text)
        self.must("qconf", "-Aq", queue)

    def own(self):
        return {"SGE_ROOT": str(self.root), "SGE_CELL": "default", "SGE_ND": "true", **PORTS}

    def environment(self, base):
        return {**base, **self.own()}

    def daemon(self, host, name):
        log = (self.root / f"{name}-{host}.log").open("w")
        self.lab.processes.append(subprocess.Popen(
            [*self.lab.enter(host), find(name)], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            env=self.environment(os.environ), preexec_fn=die_with_parent))

    def ready(self):
        """Queues that have reported, and nothing against them."""
        lines = self.ask("qstat", "-f").stdout.splitlines()
        return sum(line.startswith("all.q@") and line.split()[3] != "-NA-" and len(line.split()) == 5 for line in lines)

    def ask(self, *words):
        return subprocess.run([*self.lab.enter(0), *map(str, words)], capture_output=True, text=True,
                              env=self.environment(os.environ))

    def must(self, *words):
        done = self.ask(*words)
        if done.returncode:
            raise AssertionError(f"{words}: {done.stdout}{done.stderr}")
        return done

    def delete_all(self):
        self.ask("qdel", "-f", "-u", "root")
        until(lambda: not self.ask("qstat", "-u", "*").stdout.strip(), "all jobs to be gone")
