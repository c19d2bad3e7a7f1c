"""What processes are set to, where it costs a pass time or memory if it is missing, or not alike on all of them."""

from __future__ import annotations

import hashlib
import os
import socket
import sys
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from nfs_dask.units import format_bytes

TRIM = "MALLOC_TRIM_THRESHOLD_"
PROFILES = "distributed.worker.profile.enabled"
LINEAR_ALGEBRA = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class ProcessSettings:
    """Of one process, and of the machine or container it is in."""

    host: str
    process: int
    cores: int
    memory: int  # bytes
    compiles_for: str  # the processor, and which of its features, that numba compiles for
    trims: bool  # whether free memory is given back at once
    bounded_algebra: bool  # whether somebody said how many threads linear algebra takes
    profiles: bool  # whether Dask keeps where each second of its tasks went


def settings_of_process() -> ProcessSettings:
    """Those of the process that calls it."""
    import dask
    from dask.system import CPU_COUNT
    from distributed.system import MEMORY_LIMIT
    from numba.core.registry import cpu_target

    _, processor, features = cpu_target.target_context.codegen().magic_tuple()  # what numba knows cached code by
    digest = hashlib.blake2b(features.encode(), digest_size=3).hexdigest()
    return ProcessSettings(
        host=socket.gethostname(),
        process=os.getpid(),
        cores=CPU_COUNT,
        memory=int(MEMORY_LIMIT),
        compiles_for=f"{processor}, features {digest}" if features else processor,
        trims=TRIM in os.environ or sys.platform != "linux",
        bounded_algebra=any(name in os.environ for name in LINEAR_ALGEBRA),
        profiles=bool(dask.config.get(PROFILES, default=True)),
    )


def notes_on(
    client: ProcessSettings, workers: Mapping[str, ProcessSettings], shares: Mapping[str, tuple[int, int]]
) -> list[str]:
    """What the settings of workers cost a pass. ``shares`` are threads and bytes of each worker, as Dask has them."""
    here = (client.host, client.process)  # workers that are threads of the client are as it is
    workers = {name: one for name, one in workers.items() if (one.host, one.process) != here}
    return [*_other_processors(client, workers), *_missing(workers), *_crowded(workers, shares)]


def _other_processors(client: ProcessSettings, workers: Mapping[str, ProcessSettings]) -> list[str]:
    others = {name: one.compiles_for for name, one in workers.items() if one.compiles_for != client.compiles_for}
    if not others:
        return []
    return [
        f"numba compiles for {client.compiles_for} on the client, but for {next(iter(others.values()))} on "
        f"{_some(others)}: sums of reals may differ in their last digits, and compiled code is not shared; set "
        "NUMBA_CPU_NAME=generic and an empty NUMBA_CPU_FEATURES everywhere"
    ]


def _missing(workers: Mapping[str, ProcessSettings]) -> list[str]:
    notes = []
    if keeping := [name for name, one in workers.items() if not one.trims]:
        notes.append(
            f"on {_some(keeping)} memory that is free is kept, and counts against the limit; set {TRIM}=65536 before "
            "they start, as Dask's nannies do"
        )
    if profiling := [name for name, one in workers.items() if one.profiles]:
        notes.append(
            f"{_some(profiling)} keep profiles of their tasks, which grow to some 80 MiB in a quarter of an hour and "
            f"count against the limit; set {PROFILES} to False before they start, or "
            "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED=False"
        )
    if unbounded := [name for name, one in workers.items() if not one.bounded_algebra and one.cores > 1]:
        notes.append(
            f"on {_some(unbounded)} the linear algebra of each task takes all cores; set OMP_NUM_THREADS=1 before they "
            "start, as Dask's nannies do"
        )
    return notes


def _crowded(workers: Mapping[str, ProcessSettings], shares: Mapping[str, tuple[int, int]]) -> list[str]:
    """Machines that have promised more than they have."""
    of_host: dict[str, list[str]] = defaultdict(list)
    for name, one in workers.items():
        of_host[one.host].append(name)
    notes = []
    for host, names in of_host.items():
        machine = workers[names[0]]
        threads, memory = (sum(shares[name][i] for name in names) for i in (0, 1))
        if memory > machine.memory:
            notes.append(
                f"workers on {host} may take {format_bytes(memory)} together, and it has "
                f"{format_bytes(machine.memory)}: the system would end some of them; make them fewer or smaller"
            )
        if threads > machine.cores:
            notes.append(f"workers on {host} have {threads} threads, and it has {machine.cores} core(s)")
    return notes


def _some(names: Mapping[str, object] | list[str]) -> str:
    shown = list(names)
    return ", ".join(shown[:3]) + (f" and {len(shown) - 3} more" if len(shown) > 3 else "")
