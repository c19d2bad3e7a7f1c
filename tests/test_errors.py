"""Errors travel from workers to the client as they are."""

from __future__ import annotations

import errno
import pickle
from pathlib import Path

from nfs_dask.engine.on_workers import run_item
from nfs_dask.errors import NfsDaskError, NoRoomError


def test_a_full_disk_comes_back_from_a_worker_as_a_value_that_no_task_repeats() -> None:
    def write(_item: int) -> None:
        raise NoRoomError(errno.ENOSPC, "No space left on device", "/data/x")

    failure = pickle.loads(pickle.dumps(run_item(write, 0)))
    assert isinstance(failure.error, NoRoomError) and isinstance(failure.error, OSError)
    assert isinstance(failure.error, NfsDaskError) and failure.error.exit_code == 3
    assert str(failure.error) == "No space left on device: '/data/x'; make room there, and try again"
    assert Path(failure.error.filename) == Path("/data/x")
