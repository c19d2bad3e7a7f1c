"""A real SLURM with a munge of its own: nothing outside its folder is read or written.

It has one node, on loopback, or several, each on a host of `fault_hosts` with a host name of its own.
"""

from __future__ import annotations

import os
import platform
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.helpers.fault_hosts import Host

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scontrol", "squeue", "scancel")
PATH = os.pathsep.join([os.environ["PATH"], "/usr/sbin", "/sbin"])  # where Debian has the daemons
CPUS = 8  # that it believes to have: jobs of these tests sleep more than they compute

CONF = """
ClusterName=local
SlurmctldHost={head.name}({head.address})
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmdParameters=config_overrides
ReturnToService=2
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
KillWait=15
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
{nodes}
PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1 GraceTime=15
PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=9 PreemptMode=OFF
"""


NODE = "NodeName={node.name} NodeAddr={node.address} CPUs={cpus} RealMemory=16000 State=UNKNOWN"


@dataclass(frozen=True)
class Node:
    """A machine of SLURM's: its name, its address, and what programs are started by, to run there."""

    name: str
    address: str
    within: tuple[str, ...] = ()


def this_machine() -> Node:
    return Node(platform.node().partition(".")[0], "127.0.0.1")


def nodes_of(hosts: Sequence[Host], folder: Path) -> list[Node]:
    """Hosts with names, node0 and so on, by which they know each other; /etc/hosts is another file for them."""
    names = [f"node{i}" for i in range(len(hosts))]
    known = folder / "hosts"
    lines = [f"{host.address} {name}" for host, name in zip(hosts, names, strict=True)]
    known.write_text("\n".join(["127.0.0.1 localhost", *lines, ""]))
    enter = 'mount --bind "$0" /etc/hosts && hostname "$1" && shift && exec "$@"'
    named = ("unshare", "--uts", "--mount", "sh", "-c", enter, str(known))
    return [
        Node(name, host.address, ("nsenter", f"--net=/run/netns/{host.name}", *named, name))
        for host, name in zip(hosts, names, strict=True)
    ]


def missing() -> str:
    """Why there can be no SLURM here; empty if there can."""
    absent = [name for name in PROGRAMS if shutil.which(name, path=PATH) is None]
    if absent:
        return f"{', '.join(absent)} not installed (apt-get install slurm-wlm munge)"
    return "" if os.geteuid() == 0 else "slurmd runs jobs as root only"


class Slurm:
    """Commands of one SLURM, and what its queue holds."""

    def __init__(self, folder: Path, head: Node) -> None:
        self.folder, self.head = folder, head
        self.environment = os.environ | {"SLURM_CONF": str(folder / "slurm.conf"), "PATH": PATH}

    def __call__(self, *words: object, check: bool = True, **more: Any) -> str:
        """What a command prints."""
        more = {"env": self.environment, "timeout": 60, **more}
        command = [*self.head.within, *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, **more)
        assert not check or done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def submit(self, *words: object, environment: Mapping[str, str] = {}, cwd: Path) -> str:
        """Submit a job; its number."""
        told = self("sbatch", "--parsable", *words, env={**self.environment, **environment}, cwd=cwd)
        return told.strip().partition(";")[0]

    def jobs(self) -> dict[str, str]:
        """The state of each job in the queue, by its number."""
        lines = self("squeue", "--noheader", "--format=%A %T").split("\n")
        return {number: state for number, _, state in (line.partition(" ") for line in lines) if number}

    def facts(self, job: str) -> dict[str, str]:
        """What is known of a job, which may have ended some minutes ago."""
        words = self("scontrol", "--oneliner", "show", "job", job).split()
        return dict(word.partition("=")[::2] for word in words if "=" in word)

    def state(self, job: str) -> str:
        return self.facts(job)["JobState"]

    def release(self, job: str) -> None:
        """Let a job that was put back into the queue start now; SLURM would wait for two minutes.

        What is left of its last start has to be gone by then, or SLURM takes that one's exit code for the new one's.
        """
        wait_for(lambda: self.state(job) == "PENDING", 60, f"{job} is not queued again")
        steps = rf"slurmstepd: \[{self.facts(job)['JobId']}\."
        wait_for(lambda: subprocess.run(["pgrep", "-f", steps], check=False).returncode, 60, f"{job} has not ended yet")
        time.sleep(1)  # its end is told to the controller
        self("scontrol", "update", f"JobId={job}", "StartTime=now")


@contextmanager
def running_slurm(
    folder: Path, head: Node | None = None, nodes: Sequence[Node] = (), cpus: int = CPUS
) -> Iterator[Slurm]:
    """Start its daemons, and end them and all jobs; without a head, all of it is this machine."""
    head = head or this_machine()
    nodes = nodes or [head]
    for name in ("state", "munge", *(f"spool-{node.name}" for node in nodes)):
        (folder / name).mkdir(parents=True, mode=0o755)
    lines = "\n".join(NODE.format(node=node, cpus=cpus) for node in nodes)
    (folder / "slurm.conf").write_text(CONF.format(head=head, nodes=lines, folder=folder, ports=_free_ports(2)))
    slurm, daemons = Slurm(folder, head), []
    try:
        daemons.append(_munged(folder / "munge"))
        daemons.append(_daemon(slurm, "slurmctld", head))
        daemons += [_daemon(slurm, "slurmd", node) for node in nodes]
        words = ("sinfo", "--noheader", "--Node", "--partition=debug", "--format=%T")
        wait_for(lambda: slurm(*words, check=False).split() == ["idle"] * len(nodes), 60, "not all nodes are idle")
        yield slurm
    finally:
        with suppress(Exception):
            slurm("scancel", "--user=root", check=False)
            wait_for(lambda: not slurm.jobs(), 60, "jobs are left")
        for daemon in reversed(daemons):
            daemon.terminate()
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()


def wait_for(there: Callable[[], Any], seconds: float, otherwise: str) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := there()):
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.2)
    return found


def _munged(folder: Path) -> subprocess.Popen[bytes]:
    folder.chmod(0o711)
    (folder / "key").touch(mode=0o600)
    (folder / "key").write_bytes(os.urandom(128))
    files = {"socket": "socket", "key-file": "key", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
    words = [f"--{option}={folder / name}" for option, name in files.items()]
    process = subprocess.Popen(
        [str(shutil.which("munged", path=PATH)), "--foreground", "--force", *words],
        stderr=subprocess.DEVNULL,
    )
    wait_for((folder / "socket").exists, 20, "munged does not start")
    return process


def _daemon(slurm: Slurm, name: str, node: Node) -> subprocess.Popen[bytes]:
    """In the foreground, so that it is a child of ours; what it says is in its log."""
    command = [*node.within, str(shutil.which(name, path=PATH)), "-D"]
    with open(slurm.folder / f"{name}-{node.name}.out", "wb") as out:
        return subprocess.Popen(command, env=slurm.environment, stdout=out, stderr=out)


def _free_ports(n: int) -> list[int]:
    sockets = [socket.socket() for _ in range(n)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()
