"""Passes of other processes that take their time over each block, so that there is time to do something to them."""

from __future__ import annotations

import os
from pathlib import Path

CUSTOM = """
import time
import nfs_dask.engine.folding as folding, nfs_dask.engine.plan as plan, nfs_dask.engine.tasks as tasks
prepare = folding.prepare
def slowly(*args):
    time.sleep({seconds})
    return prepare(*args)
folding.prepare = tasks.prepare = slowly
plan.BATCH_NBYTES = 1
"""


def slow_environment(folder: Path, seconds: float) -> dict[str, str]:
    """An environment whose interpreters, and those they start, sleep at each block; a batch is one block there."""
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(CUSTOM.format(seconds=seconds))
    before = os.environ.get("PYTHONPATH")
    path = [str(folder), *([before] if before else [])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(path)}
