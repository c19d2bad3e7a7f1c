"""Rows about processes: workers that die, freeze or take too much memory, schedulers and clients that die."""

from __future__ import annotations

import time

from tests.faults.scene import Scene, freeze, thaw
from tests.faults.table import REFUSED, SAME, Fault, Place, in_a_program, own_workers, refused, succeeded


def worker_killed(scene: Scene, there: Place) -> str:
    fit = there.begin()
    scene.in_mid_pass(fit)
    fit.workers()[0].kill()
    succeeded(fit)
    return SAME


def worker_killed_in_a_program(scene: Scene, there: Place) -> str:
    return worker_killed(scene, there)


def worker_frozen_briefly(scene: Scene, there: Place) -> str:
    fit = there.begin()
    scene.in_mid_pass(fit)
    worker = fit.workers()[0]
    freeze(worker)
    time.sleep(4)
    thaw(worker)
    succeeded(fit)
    assert not worker.is_running() or True
    return SAME


def worker_frozen(scene: Scene, there: Place) -> str:
    fit = there.begin(DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL="5s")
    scene.in_mid_pass(fit)
    freeze(fit.workers()[0])
    succeeded(fit)
    return SAME


EATS = """
def deed(number):
    import os
    if number == 20 and len(os.listdir({marks!r})) < {times}:
        open(os.path.join({marks!r}, os.urandom(6).hex()), "w").close()
        held = []
        while len(held) < 256:
            held.append(b"x" * (16 << 20))
            time.sleep(0.02)
"""


def _eating(scene: Scene, times: int) -> None:
    """From now on, block 20 takes up to 4 GiB, so many times."""
    marks = scene.folder / "marks"
    marks.mkdir(exist_ok=True)
    scene.deed = EATS.format(marks=str(marks), times=times)


def worker_out_of_memory(scene: Scene, there: Place) -> str:
    _eating(scene, 1)
    fit = scene.fit("--workers", 2, "--memory-limit", "768MiB")
    succeeded(fit)
    assert len(list((scene.folder / "marks").iterdir())) == 1
    return SAME


def worker_out_of_memory_each_time(scene: Scene, there: Place) -> str:
    _eating(scene, 99)
    refused(scene.fit("--workers", 2, "--memory-limit", "768MiB"), 4, "workers died", "more memory", "--resume")
    _eating(scene, 0)
    succeeded(there.begin(resume=True))
    return REFUSED


def client_killed(scene: Scene, there: Place) -> str:
    fit = there.begin()
    scene.in_mid_pass(fit)
    fit.kill()
    succeeded(there.begin(resume=True))
    return REFUSED


ROWS = [
    Fault("a worker is killed", "", "", own_workers, worker_killed),
    Fault("a worker is killed p", "", "", in_a_program, worker_killed_in_a_program),
    Fault("a worker is frozen briefly", "", "", own_workers, worker_frozen_briefly),
    Fault("a worker is frozen", "", "", own_workers, worker_frozen),
    Fault("a worker OOM", "", "", own_workers, worker_out_of_memory),
    Fault("a worker OOM each", "", "", own_workers, worker_out_of_memory_each_time),
    Fault("client", "", "", own_workers, client_killed),
]


def scheduler_killed(scene: Scene, there: Place) -> str:
    fit = there.begin()
    scene.in_mid_pass(fit)
    there.cluster.scheduler.kill()
    refused(fit, 4, "scheduler is gone", "--resume")
    there.cluster.stop()
    there.cluster.start()
    succeeded(there.begin(resume=True))
    return REFUSED


def client_of_cluster_killed(scene: Scene, there: Place) -> str:
    return client_killed(scene, there)


def worker_of_cluster_killed(scene: Scene, there: Place) -> str:
    fit = there.begin()
    scene.in_mid_pass(fit)
    there.cluster.workers[0].workers()[0].kill()
    succeeded(fit)
    return SAME


from tests.faults.clusters import own_cluster

ROWS += [
    Fault("a scheduler is killed", "", "", own_cluster, scheduler_killed),
    Fault("client of cluster", "", "", own_cluster, client_of_cluster_killed),
    Fault("worker of cluster", "", "", own_cluster, worker_of_cluster_killed),
]
