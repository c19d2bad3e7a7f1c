"""Rows about processes: workers that die, freeze or take too much memory, schedulers and clients that die."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.faults.clusters import own_cluster
from tests.faults.scene import BATCH, Scene, freeze, thaw, wait_for
from tests.faults.table import (
    ONE_WORKER,
    REFUSED,
    SAME,
    TWO_WORKERS,
    Fault,
    Place,
    in_a_program,
    in_cross_validation,
    in_panels,
    in_predictions,
    own_workers,
    refused,
    succeeded,
)

TTL = {"DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "5s"}  # what Dask has as five minutes
LIMIT = ("--memory-limit", "768MiB")
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


def worker_killed(scene: Scene, there: Place) -> str:
    fit = there.begin()
    scene.in_mid_pass(fit)
    fit.workers()[0].kill()
    assert "was lost, and others do its tasks again" in succeeded(fit).said
    return SAME


def worker_of_a_program_killed(scene: Scene, there: Place) -> str:
    return worker_killed(scene, there)


def worker_killed_in_panels(scene: Scene, there: Place) -> str:
    return worker_killed(scene, there)


def worker_killed_in_cross_validation(scene: Scene, there: Place) -> str:
    return worker_killed(scene, there)


def worker_killed_in_predictions(scene: Scene, there: Place) -> str:
    return worker_killed(scene, there)


def worker_frozen_for_a_moment(scene: Scene, there: Place) -> str:
    fit = there.begin(**TTL)
    scene.in_mid_pass(fit)
    worker = fit.workers()[0]
    freeze(worker)
    time.sleep(2)
    thaw(worker)
    succeeded(fit)
    return SAME


def worker_frozen(scene: Scene, there: Place) -> str:
    fit = there.begin(**TTL)
    scene.in_mid_pass(fit)
    freeze(fit.workers()[0])
    succeeded(fit)
    return SAME


def worker_frozen_from_the_start(scene: Scene, there: Place) -> str:
    frozen, other = there.cluster.workers
    wait_for(lambda: all("Registered to" in worker.said.read_text() for worker in (frozen, other)))
    (process,) = frozen.workers()
    freeze(process)
    fit = there.begin()
    said = " ".join(succeeded(fit).said.split())
    thaw(process)
    assert re.search(r"1 of 2 workers are ready.* worker \S+ has been silent for", said), said
    return SAME


def worker_frozen_at_sigterm(scene: Scene, there: Place) -> str:
    fit = there.begin()
    scene.in_mid_pass(fit)
    freeze(fit.workers()[0])
    fit.process.terminate()
    refused(fit, 143, "--resume", seconds=10)
    succeeded(there.begin(resume=True))
    return REFUSED


def eating(scene: Scene, times: int) -> Path:
    """From now on, block 20 takes up to 4 GiB, so many times; the folder that has a file for each."""
    marks = scene.folder / "marks"
    marks.mkdir(exist_ok=True)
    scene.deed = EATS.format(marks=str(marks), times=times)
    return marks


def worker_out_of_memory(scene: Scene, there: Place) -> str:
    marks = eating(scene, 1)
    succeeded(there.begin(LIMIT))
    assert len(list(marks.iterdir())) == 1
    return SAME


def workers_out_of_memory_each_time(scene: Scene, there: Place) -> str:
    eating(scene, 99)
    refused(there.begin(LIMIT), 4, "workers died", "more memory", "--resume")
    eating(scene, 0)
    succeeded(there.begin(resume=True))
    return REFUSED


def worker_killed_by_the_kernel(scene: Scene, there: Place) -> str:
    marks = eating(scene, 1)
    with memory_group(scene.mark) as group:
        fit = there.begin()
        scene.in_mid_pass(fit, blocks=4)
        for worker in fit.workers():
            (group / "cgroup.procs").write_text(str(worker.pid))
        wait_for(lambda: killed_in(group) > 0, what="the kernel")
        succeeded(fit)
        wait_for(lambda: not (group / "cgroup.procs").read_text())
    assert len(list(marks.iterdir())) == 1
    return SAME


@contextmanager
def memory_group(name: str) -> Iterator[Path]:
    """A control group whose processes may take 400 MiB beyond what they have."""
    old = Path("/sys/fs/cgroup/memory")
    group, limit = (old if old.is_dir() else old.parent) / f"nfs-{name}", 400 << 20
    group.mkdir()
    try:
        (group / ("memory.limit_in_bytes" if old.is_dir() else "memory.max")).write_text(str(limit))
        yield group
    finally:
        group.rmdir()


def killed_in(group: Path) -> int:
    """Processes of a control group that the kernel has killed."""
    for name in ("memory.oom_control", "memory.events"):
        if (group / name).exists():
            facts = dict(line.split() for line in (group / name).read_text().splitlines())
            return int(facts["oom_kill"])
    return 0


def client_killed(scene: Scene, there: Place) -> str:
    fit = there.begin()
    scene.in_mid_pass(fit)
    workers = fit.workers()
    fit.kill()
    wait_for(lambda: not any(worker.is_running() for worker in workers), what="the end of its workers")
    succeeded(there.begin(resume=True))
    return REFUSED


def client_of_a_cluster_killed(scene: Scene, there: Place) -> str:
    fit = there.begin()
    scene.in_mid_pass(fit)
    fit.kill()
    succeeded(there.begin(resume=True))
    return REFUSED


def scheduler_killed(scene: Scene, there: Place) -> str:
    fit = there.begin()
    scene.in_mid_pass(fit)
    there.cluster.scheduler.kill()
    refused(fit, 4, "scheduler is gone", "--resume")
    there.cluster.stop()
    there.cluster.start()
    succeeded(there.begin(resume=True))
    return REFUSED


ROWS = [
    Fault(
        "a worker is killed",
        "Dask gives its task to another worker, which goes on from the last checkpoint",
        "nothing",
        own_workers,
        worker_killed,
        again=ONE_WORKER,
    ),
    Fault(
        "a worker of a program's `DaskEngine(run=)` is killed",
        "the same",
        "nothing",
        in_a_program,
        worker_of_a_program_killed,
        again=ONE_WORKER,
    ),
    Fault(
        "a worker is killed in a pass that sorts by column",
        "its task goes to another worker, which reads no batch again that is in a file",
        "nothing",
        in_panels,
        worker_killed_in_panels,
        again=BATCH,
    ),
    Fault(
        "a worker is killed in a cross-validation",
        "its task goes to another worker, and begins anew: there are no checkpoints without a run folder",
        "nothing",
        in_cross_validation,
        worker_killed_in_cross_validation,
        again=20,  # of the 24 that were read by two
    ),
    Fault(
        "a worker is killed while rows are predicted",
        "its task, of one block, goes to another worker",
        "nothing",
        in_predictions,
        worker_killed_in_predictions,
        again=3,  # this, and results that had not been fetched
    ),
    Fault(
        "a worker is frozen for 2 s",
        "the others go on, and then it does too",
        "nothing",
        own_workers,
        worker_frozen_for_a_moment,
    ),
    Fault(
        "a worker is frozen for good, the scheduler's `worker-ttl` is 5 s",
        "after that time the scheduler gives it up, and its task goes to another; by default that is 5 minutes",
        "nothing; set `worker-ttl` to a minute where workers freeze",
        own_workers,
        worker_frozen,
        again=ONE_WORKER,
    ),
    Fault(
        "a worker is frozen before a fit begins",
        "after 8 s the fit begins without it, and names it",
        "nothing",
        own_cluster,
        worker_frozen_from_the_start,
    ),
    Fault(
        "a worker is frozen, and then the command is ended by SIGTERM",
        "it ends within 10 s with exit code 143",
        "`--resume`",
        own_workers,
        worker_frozen_at_sigterm,
        again=TWO_WORKERS,
    ),
    Fault(
        "a task takes more memory than its worker may, once",
        "the worker's nanny ends it and starts it anew, and the task is repeated",
        "nothing",
        own_workers,
        worker_out_of_memory,
        again=ONE_WORKER,
    ),
    Fault(
        "a task takes more memory than its worker may, each time",
        "after four workers, exit code 4: workers died while they ran one task, most often out of memory",
        "more memory, or fewer threads, and `--resume`",
        own_workers,
        workers_out_of_memory_each_time,
        again=4 * BATCH + TWO_WORKERS,
    ),
    Fault(
        "the kernel kills a worker, as its control group is out of memory",
        "as if it had been killed otherwise",
        "nothing",
        own_workers,
        worker_killed_by_the_kernel,
        needs="root",
        again=ONE_WORKER,
    ),
    Fault(
        "the command is killed with SIGKILL",
        "its workers end by themselves; status says that the run is lost",
        "`--resume`",
        own_workers,
        client_killed,
        again=TWO_WORKERS,
    ),
    Fault(
        "the command is killed, the cluster is not",
        "the scheduler drops its tasks",
        "`--resume`, on this or any other cluster, at once",
        own_cluster,
        client_of_a_cluster_killed,
        again=TWO_WORKERS,
    ),
    Fault(
        "the scheduler is killed",
        "exit code 4 when Dask has given up looking for it: the scheduler is gone",
        "another scheduler, and `--resume`",
        own_cluster,
        scheduler_killed,
        again=TWO_WORKERS,
    ),
]
