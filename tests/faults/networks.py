"""Rows about the network between hosts: cut, cut for a moment, slow, lossy. Each host is a network namespace."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.faults.clusters import Cluster
from tests.faults.scene import Running, Scene
from tests.faults.table import ONE_WORKER, REFUSED, SAME, TWO_WORKERS, Fault, Place, refused, succeeded
from tests.helpers.fault_hosts import hosts


@contextmanager
def four_hosts(scene: Scene) -> Iterator[Place]:
    """A client, a scheduler and two workers, each on a host of its own."""
    with hosts(4) as (client, *others):
        cluster = Cluster(scene, [(host.within, host.address) for host in others], ttl="5s")
        cluster.start()

        def begin(**how: Any) -> Running:
            return scene.fit("--scheduler", cluster.address, "--insecure", within=client.within, **how)

        yield Place(begin, {"cluster": cluster, "client": client, "hosts": [client, *others]})
        cluster.stop()


def worker_cut_off(scene: Scene, there: Place) -> str:
    fit = there.begin()
    scene.in_mid_pass(fit)
    there.hosts[2].cut()
    succeeded(fit)
    there.hosts[2].mend()
    return SAME


def worker_cut_off_for_a_moment(scene: Scene, there: Place) -> str:
    fit = there.begin()
    scene.in_mid_pass(fit)
    there.hosts[2].cut()
    time.sleep(2)
    there.hosts[2].mend()
    succeeded(fit)
    return SAME


def client_cut_off(scene: Scene, there: Place) -> str:
    fit = there.begin()
    scene.in_mid_pass(fit)
    there.client.cut()
    refused(fit, 4, "scheduler is gone", "--resume")
    there.client.mend()
    succeeded(there.begin(resume=True))
    return REFUSED


def network_slow(scene: Scene, there: Place) -> str:
    for host in there.hosts:
        host.slow("1mbit")
    succeeded(there.begin())
    return SAME


def network_lossy(scene: Scene, there: Place) -> str:
    for host in there.hosts:
        host.lose(0.05)
    succeeded(there.begin())
    assert sum(host.dropped() for host in there.hosts) > 20
    return SAME


def row(name: str, happens: str, todo: str, disturb: Any, again: int = 0) -> Fault:
    needs = "lossy network" if disturb is network_lossy else "network"  # of what is dropped iptables keeps count
    return Fault(name, happens, todo, four_hosts, disturb, needs=needs, again=again)


ROWS = [
    row(
        "a worker's host is cut off for good, `worker-ttl` is 5 s",
        "after that time the scheduler gives the worker up, and its task goes to another",
        "nothing",
        worker_cut_off,
        ONE_WORKER,
    ),
    row(
        "a worker's host is cut off for 2 s",
        "its tasks go on, and what was not heard is heard then",
        "nothing",
        worker_cut_off_for_a_moment,
    ),
    row(
        "the command's host is cut off",
        "exit code 4 when Dask has given up looking for the scheduler",
        "`--resume`",
        client_cut_off,
        TWO_WORKERS,
    ),
    row("each host sends 1 Mbit/s at most", "all is slower", "nothing", network_slow),
    row("each host loses 5 % of what it sends, and of what it gets", "TCP sends it again", "nothing", network_lossy),
]
