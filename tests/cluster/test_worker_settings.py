"""What settings of workers cost is told of those that have them, and of them alone."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

from nfs_dask.cluster.worker_settings import ProcessSettings, notes_on, settings_of_process
from nfs_dask.units import GiB

SOUND = ProcessSettings("notebook", 1, 8, 32 * GiB, "generic", True, True, False)
WORKERS = {f"worker {i}": replace(SOUND, host=f"node{i}", process=2) for i in range(5)}
SHARES = dict.fromkeys(WORKERS, (4, 8 * GiB))


def notes(changed, client=SOUND, shares=SHARES):
    return notes_on(client, WORKERS | changed, shares)


def test_workers_that_are_alike_and_have_what_they_need_are_not_mentioned():
    assert notes({}) == []


def test_another_processor_is_told_with_what_to_set():
    (note,) = notes({"worker 3": replace(WORKERS["worker 3"], compiles_for="znver5")})
    assert "generic on the client, but for znver5 on worker 3:" in note and "NUMBA_CPU_NAME=generic" in note


def test_kept_memory_profiles_and_unbounded_algebra_are_told():
    (note,) = notes({"worker 0": replace(WORKERS["worker 0"], trims=False)})
    assert "on worker 0 memory that is free is kept" in note and "MALLOC_TRIM_THRESHOLD_=65536" in note
    (note,) = notes({"worker 1": replace(WORKERS["worker 1"], bounded_algebra=False)})
    assert "on worker 1 the linear algebra of each task takes all cores" in note and "OMP_NUM_THREADS=1" in note
    (note,) = notes({"worker 2": replace(WORKERS["worker 2"], profiles=True)})
    assert "worker 2 keep profiles of their tasks" in note and "PROFILE__ENABLED=False" in note
    alone = replace(WORKERS["worker 1"], bounded_algebra=False, cores=1)
    assert notes({"worker 1": alone}, shares=SHARES | {"worker 1": (1, GiB)}) == []


def test_a_machine_that_has_promised_more_than_it_has_is_told():
    together = {name: replace(one, host="node") for name, one in WORKERS.items()}
    memory, threads = notes(together)
    assert "workers on node may take 40.0 GiB together, and it has 32.0 GiB" in memory
    assert "workers on node have 20 threads, and it has 8 core(s)" in threads


def test_workers_that_are_threads_of_the_client_are_as_it_is():
    here = dict.fromkeys(WORKERS, replace(SOUND, trims=False, bounded_algebra=False))
    assert notes_on(SOUND, here, SHARES) == []


def test_of_a_process_it_is_told_what_its_environment_says():
    code = "from nfs_dask.cluster.worker_settings import settings_of_process as s; t = s(); "
    code += "print(t.compiles_for, t.trims, t.bounded_algebra, t.profiles, t.process)"
    chosen = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "", "MALLOC_TRIM_THRESHOLD_": "65536"}
    chosen |= {"DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False"}
    plain = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    told = subprocess.run([sys.executable, "-c", code], env=plain | chosen, capture_output=True, text=True, check=True)
    name, trims, bounded, profiles, process = told.stdout.split()
    assert (name, trims, bounded, profiles) == ("generic", "True", "False", "False") and int(process) != os.getpid()
    assert settings_of_process().process == os.getpid()
