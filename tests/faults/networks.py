"""Rows about the network between hosts: cut, cut for a moment, slow, lossy."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.faults.clusters import Cluster
from tests.faults.scene import Scene
from tests.faults.table import REFUSED, SAME, Fault, Place, refused, succeeded
from tests.helpers.fault_hosts import hosts


@contextmanager
def four_hosts(scene: Scene) -> Iterator[Place]:
    """A client, a scheduler and two workers, each on a host of its own."""
    with hosts(4) as (client, *others):
        cluster = Cluster(scene, [(host.within, host.address) for host in others])
        cluster.start()

        def begin(**how: object):
            return scene.fit("--scheduler", cluster.address, "--insecure", within=client.within, **how)

        yield Place(begin, {"cluster": cluster, "client": client, "hosts": others})
        cluster.stop()


def worker_cut_off(scene: Scene, there: Place) -> str:
    fit = there.begin()
    scene.in_mid_pass(fit)
    there.hosts[1].cut()
    succeeded(fit)
    return SAME


def worker_cut_off_briefly(scene: Scene, there: Place) -> str:
    fit = there.begin()
    scene.in_mid_pass(fit)
    there.hosts[1].cut()
    time.sleep(3)
    there.hosts[1].mend()
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
    for host in (there.client, *there.hosts):
        host.slow("1mbit")
    succeeded(there.begin())
    return SAME


def network_lossy(scene: Scene, there: Place) -> str:
    for host in (there.client, *there.hosts):
        host.lose(0.05)
    succeeded(there.begin())
    assert sum(host.dropped() for host in (there.client, *there.hosts)) > 20
    return SAME


ROWS = [
    Fault("cut", "", "", four_hosts, worker_cut_off),
    Fault("cut", "", "", four_hosts, worker_cut_off_briefly),
    Fault("cut", "", "", four_hosts, client_cut_off),
    Fault("cut", "", "", four_hosts, network_slow),
    Fault("cut", "", "", four_hosts, network_lossy),
]
