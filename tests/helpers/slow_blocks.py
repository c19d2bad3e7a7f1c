"""Passes of other processes that take their time over each block, so that there is time to do something to them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

CLOCK = "NFS_DASK_WRONG_CLOCK"  # the variable that says by how many hours the time of day is wrong
CUSTOM = """
import os, time
hours, right = int(os.environ.get("NFS_DASK_WRONG_CLOCK", 0)), time.time
if hours:
    time.time = lambda: right() + 3600 * hours
import nfs_dask.engine.folding as folding, nfs_dask.engine.plan as plan, nfs_dask.engine.tasks as tasks
prepare, log = folding.prepare, {log!r}
def slowly_read(block):
    time.sleep({seconds})
    deed(block.number)
    if log:
        with open(log, "a") as file:
            file.write(f"{{block.number}}\\n")
def slowly(block, *args):
    slowly_read(block)
    return prepare(block, *args)
{deed}
folding.prepare = tasks.prepare = slowly
plan.BATCH_NBYTES = {batch_nbytes}
tasks.CHECKPOINT_SECONDS = {checkpoint_seconds}
"""
NO_DEED = """
def deed(number):
    pass
"""


def slow_program(
    seconds: float,
    *,
    checkpoint_seconds: float = 30.0,
    log: Path | None = None,
    deed: str = NO_DEED,
    batch_nbytes: int = 1,
) -> str:
    """What an interpreter begins with, as `sitecustomize`, that sleeps at each block; see `slow_environment`."""
    return CUSTOM.format(
        seconds=seconds,
        checkpoint_seconds=checkpoint_seconds,
        log=str(log or ""),
        deed=deed,
        batch_nbytes=batch_nbytes,
    )


def slow_environment(folder: Path, seconds: float, **how: Any) -> dict[str, str]:
    """An environment whose interpreters, and those they start, sleep at each block; a batch is one block there.

    ``log`` is a file that gets the number of each block that is read, a line each time. ``deed`` defines
    what is done at a block, as a function of its number.
    """
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(slow_program(seconds, **how))
    before = os.environ.get("PYTHONPATH")
    path = [str(folder), *([before] if before else [])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(path)}
