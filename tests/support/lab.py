"""A laboratory of hosts on this machine: network namespaces with a name, an address and an sshd each.

Every host has its own network, host name, /etc/hosts, /sys, /dev/shm and boot id, by which libraries tell
machines apart; processes and other files are shared. The bridge that joins them lives in a namespace of its own, so nothing of the machine's own network is touched, and all of it
goes with the processes of the laboratory: those die with this one, whatever happens to it.
"""

import ctypes
import os
import shutil
import signal
import subprocess
import uuid
from pathlib import Path

from support.job import until

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)
NEEDED = ["ip", "nsenter", "unshare", "ssh", "ssh-keygen", "sshd"]


def why_not():
    """Why there can be no laboratory here; empty when there can."""
    if os.geteuid() != 0:
        return "only root can make network namespaces"
    missing = [name for name in NEEDED if find(name) is None]
    if missing:
        return f"{', '.join(missing)} are not installed (tools/setup test)"
    if subprocess.run(["unshare", "-n", "-m", "-u", "true"], capture_output=True).returncode != 0:
        return "namespaces are not allowed here"
    return ""


def find(name):
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")


def die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def listens(pid, port):
    """Whether anybody listens on the port in the network of process `pid`."""
    for table in ("tcp", "tcp6"):
        with open(f"/proc/{pid}/net/{table}") as file:
            if any(fields[1].endswith(f":{port:04X}") and fields[3] == "0A" for fields in map(str.split, file)):
                return True
    return False


class Lab:
    bits = 24  # of the network that the hosts share

    def __init__(self, folder, count=3, one_boot_id=False):
        """`one_boot_id`: hosts that UCX takes for one machine, so that it joins them by shared memory."""
        self.folder = Path(folder)
        self.boot_id = str(uuid.uuid4()) if one_boot_id else None
        self.names = [f"node{i}" for i in range(count)]
        self.processes = []
        self.holders = []
        try:
            self.build()
        except BaseException:
            self.close()
            raise

    def build(self):
        hosts = self.folder / "hosts"
        hosts.write_text("127.0.0.1 localhost\n" + "".join(
            f"{self.address(i)} {name}\n" for i, name in enumerate(self.names)))
        (self.folder / "nsswitch").write_text("passwd: files\ngroup: files\nhosts: files\n")  # no name server
        switch = self.hold("switch", hosts)
        self.ip(switch, "link", "add", "br0", "type", "bridge")
        self.ip(switch, "link", "set", "br0", "up")
        self.make_keys()
        Path("/run/sshd").mkdir(exist_ok=True)
        for i, name in enumerate(self.names):
            holder = self.hold(name, hosts)
            self.holders.append(holder)
            port = f"port{i}"
            run("ip", "link", "add", "eth0", "netns", str(holder), "type", "veth", "peer", "name", port, "netns",
                str(switch))
            self.ip(switch, "link", "set", port, "master", "br0", "up")
            self.ip(holder, "link", "set", "eth0", "up")
            self.ip(holder, *self.add_address(i))
            self.ip(holder, "route", "add", "default", "via", self.address(250))
            self.runtime_dir(i).mkdir(mode=0o700)
            self.start_sshd(i)

    def runtime_dir(self, i):
        """XDG_RUNTIME_DIR of host i."""
        return self.folder / f"run-{i}"

    @staticmethod
    def address(i):
        return f"10.77.0.{i + 1}"

    def add_address(self, i):
        return ["address", "add", f"{self.address(i)}/{self.bits}", "dev", "eth0"]

    def hold(self, name, hosts):
        """A process that keeps a host's namespaces; its pid."""
        ready, told = os.pipe()
        boot_id = self.folder / f"boot-id-{name}"
        boot_id.write_text(f"{self.boot_id or uuid.uuid4()}\n")
        cgroup = self.folder / "cgroup"
        cgroup.mkdir(exist_ok=True)
        script = (f"hostname {name} && mount --make-rprivate / && mount --bind {hosts} /etc/hosts && "
                  f"mount --bind {self.folder}/nsswitch /etc/nsswitch.conf && "
                  f"mount --bind {boot_id} /proc/sys/kernel/random/boot_id && "
                  f"mount --rbind /sys/fs/cgroup {cgroup} && mount -t sysfs sysfs /sys && "
                  f"mount --move {cgroup} /sys/fs/cgroup && mount -t tmpfs tmpfs /dev/shm && "
                  # What this machine's login files do costs each remote command more than all of dtrun.
                  "{ [ ! -e ~root/.bashrc ] || mount --bind /dev/null ~root/.bashrc; } && "
                  f"ip link set lo up && echo ready >&{told} && exec sleep infinity")
        process = subprocess.Popen(["unshare", "-n", "-u", "-m", "sh", "-c", script], pass_fds=[told],
                                   preexec_fn=die_with_parent)
        os.close(told)
        self.processes.append(process)
        with os.fdopen(ready) as pipe:
            if pipe.readline() != "ready\n":
                raise AssertionError(f"the namespaces of {name} could not be made")
        return process.pid

    def ip(self, holder, *words):
        run("nsenter", "-t", str(holder), "-n", "ip", *words)

    def make_keys(self):
        for name in ["id", "stranger", *(f"host-{n}" for n in self.names)]:
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(self.folder / name))
        shutil.copy(self.folder / "id.pub", self.folder / "authorized_keys")
        known = "".join(
            f"{name},{self.address(i)} {(self.folder / f'host-{name}.pub').read_text()}"
            for i, name in enumerate(self.names))
        (self.folder / "known_hosts").write_text(known)
        (self.folder / "ssh_config").write_text(
            f"Host *\n  IdentityFile {self.folder}/id\n  IdentitiesOnly yes\n  StrictHostKeyChecking yes\n"
            f"  UserKnownHostsFile {self.folder}/known_hosts\n  GlobalKnownHostsFile /dev/null\n"
            "  LogLevel ERROR\n  KexAlgorithms curve25519-sha256\n")  # OpenSSH's own choice takes 0.07 s of a processor

    def start_sshd(self, i):
        config = self.folder / f"sshd-{i}"
        config.write_text(
            f"ListenAddress {self.address(i)}\nHostKey {self.folder}/host-{self.names[i]}\nPidFile none\n"
            f"AuthorizedKeysFile {self.folder}/authorized_keys\nStrictModes no\nUsePAM no\nUseDNS no\n"
            "PasswordAuthentication no\nPermitRootLogin yes\nPrintMotd no\nMaxStartups 100\n"
            f"SetEnv XDG_RUNTIME_DIR={self.runtime_dir(i)}\n")
        log = self.folder / f"sshd-{i}.log"
        with log.open("w") as said:
            self.processes.append(subprocess.Popen([*self.enter(i), find("sshd"), "-D", "-e", "-f", str(config)],
                                                   stderr=said, preexec_fn=die_with_parent))
        until(lambda: "listening" in log.read_text().lower(), f"sshd of {self.names[i]}")

    def enter(self, i, folder="/"):
        """The words before a command that make it run on host i, in `folder`."""
        return ["nsenter", "-t", str(self.holders[i]), "-n", "-u", "-m", f"--wd={folder}"]

    def segments(self, i):
        """Files in /dev/shm of host i."""
        return list(Path("/proc", str(self.holders[i]), "root", "dev", "shm").iterdir())

    def shell(self):
        """cluster.remote_shell"""
        return ["ssh", "-F", str(self.folder / "ssh_config"), "-o", "BatchMode=yes", "-o", "ConnectTimeout=5"]

    def processes_on(self, i):
        """Pids on host i but for the laboratory's own."""
        space = os.readlink(f"/proc/{self.holders[i]}/ns/net")
        own = {process.pid for process in self.processes}
        found = []
        for entry in os.listdir("/proc"):
            if not entry.isdigit() or int(entry) in own:
                continue
            try:
                if os.readlink(f"/proc/{entry}/ns/net") == space and state(entry) != "Z":
                    found.append(int(entry))
            except OSError:
                continue  # gone
        return found

    def close(self):
        for i in range(len(self.holders)):
            for pid in self.processes_on(i):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        for process in self.processes:
            process.kill()
            process.wait()


class Ipv6Lab(Lab):
    """Hosts that have no IPv4 address but, for PMIx, that of the loopback interface."""

    bits = 64

    @staticmethod
    def address(i):
        return f"fd00:77::{i + 1:x}"

    def add_address(self, i):
        return [*super().add_address(i), "nodad"]  # usable at once


class NoIpv4Lab(Ipv6Lab):
    """Hosts that have no IPv4 address at all."""

    def hold(self, name, hosts):
        holder = super().hold(name, hosts)
        self.ip(holder, "address", "del", "127.0.0.1/8", "dev", "lo")
        return holder


def state(pid):
    text = Path(f"/proc/{pid}/stat").read_text()
    return text[text.rindex(")") + 2]


def command_of(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def environment_of(pid):
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


def parent_of(pid):
    """0 when it has gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0
    return int(text[text.rindex(")") + 2:].split()[1])


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(words)}: {done.stderr}")
