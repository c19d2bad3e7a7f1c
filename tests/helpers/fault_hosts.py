"""Hosts as network namespaces on a bridge of this machine, whose network can be cut, slowed and made lossy.

Each host has an address of its own. What is made has a name of its own too, and goes with the context.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import IO


def missing(*tools: str) -> str:
    """What stands in the way of network namespaces here, and of tools; empty where nothing does."""
    if os.geteuid() != 0:
        return "root"
    absent = [name for name in ("ip", "tc", *tools) if shutil.which(name) is None]
    if absent:
        return ", ".join(absent)
    probe = f"nfs-probe-{uuid.uuid4().hex[:6]}"
    made = subprocess.run(["ip", "netns", "add", probe], capture_output=True, check=False)
    subprocess.run(["ip", "netns", "del", probe], capture_output=True, check=False)
    return "" if made.returncode == 0 else "network namespaces"


@dataclass(frozen=True)
class Host:
    """A network namespace with one interface."""

    name: str
    address: str

    @property
    def within(self) -> tuple[str, ...]:
        """What a program is started by, to run there."""
        return ("ip", "netns", "exec", self.name) if self.name else ()

    @contextmanager
    def visited(self) -> Iterator[None]:
        """This thread is there meanwhile, and so is what it starts."""
        with open("/proc/thread-self/ns/net") as home, open(f"/run/netns/{self.name}") as there:
            _go_to(there)
            try:
                yield
            finally:
                _go_to(home)

    def cut(self) -> None:
        """Nothing gets through in either direction; no connection is told so."""
        self._do("ip", "link", "set", "eth0", "down")

    def mend(self) -> None:
        self._do("ip", "link", "set", "eth0", "up")

    def slow(self, rate: str) -> None:
        """Bound what it sends, such as ``"1mbit"``."""
        self._do(
            "tc", "qdisc", "replace", "dev", "eth0", "root", "tbf", "rate", rate, "burst", "32kb", "latency", "50ms"
        )

    def lose(self, share: float) -> None:
        """Drop this share of the packets that come in, and of those that go out."""
        for chain in ("INPUT", "OUTPUT"):
            match = ("-m", "statistic", "--mode", "random", "--probability", str(share))
            self._do("iptables", "-A", chain, *match, "-j", "DROP")

    def dropped(self) -> int:
        """Packets that `lose` has dropped so far."""
        shown = self._do("iptables", "-L", "-n", "-v", "-x")
        return sum(int(line.split()[0]) for line in shown.splitlines() if " DROP " in line and "statistic" in line)

    def _do(self, *words: str) -> str:
        return done(*self.within, *words)


LOOPBACK = Host("", "127.0.0.1")  # this machine


def _go_to(namespace: IO[str]) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace.fileno(), 0):
        raise OSError(ctypes.get_errno(), "setns")


@contextmanager
def hosts(n: int) -> Iterator[list[Host]]:
    """So many hosts on a bridge, which this machine is not on; all of it goes at the end."""
    token = uuid.uuid4().hex[:6]
    with ExitStack() as stack:

        def add(made: str, gone: str) -> None:
            stack.callback(subprocess.run, gone.split(), capture_output=True, check=False)
            done(*made.split())

        bridge = f"nfsb-{token}"
        switch = f"nfs-{token}-s"  # the bridge is in a namespace of its own: no route or rule of the machine is touched
        add(f"ip netns add {switch}", f"ip netns del {switch}")
        done(*f"ip -n {switch} link add {bridge} type bridge".split())
        done(*f"ip -n {switch} link set {bridge} up".split())
        made = []
        for i in range(n):
            host = Host(f"nfs-{token}-{i}", f"10.78.0.{i + 1}")
            add(f"ip netns add {host.name}", f"ip netns del {host.name}")
            done(*f"ip -n {switch} link add v{i} type veth peer name eth0 netns {host.name}".split())
            done(*f"ip -n {switch} link set v{i} master {bridge} up".split())
            done(*f"ip -n {host.name} addr add {host.address}/24 dev eth0".split())
            for link in ("eth0", "lo"):
                done(*f"ip -n {host.name} link set {link} up".split())
            made.append(host)
        yield made


def done(*words: str) -> str:
    """What a command says, which has to succeed."""
    result = subprocess.run(words, capture_output=True, text=True, check=False)
    assert result.returncode == 0, (words, result.stderr)
    return result.stdout
