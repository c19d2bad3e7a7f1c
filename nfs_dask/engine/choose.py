"""Which engine runs a pass when the user names none."""

from __future__ import annotations

import sys

from nfs_dask.engine.base import Engine
from nfs_dask.engine.distributed import DaskEngine
from nfs_dask.engine.serial import SerialEngine
from nfs_dask.errors import InputError
from nfs_dask.sources.base import Source

SERIAL_ENTRIES = 20_000_000  # fewer are counted before a second thread has paid for itself


def choose_engine(engine: Engine | None, source: Source) -> Engine:
    """The engine given; else the current client's, for data that are not in memory; else what suits this machine.

    In-memory input runs serially. Data on disk run serially while they are small, and on threads of this process
    beyond, so that a script needs no ``__main__`` guard.
    """
    if engine is not None:
        if not isinstance(engine, Engine):
            raise InputError(f"engine={engine!r}; give nfs_dask.SerialEngine(), nfs_dask.DaskEngine(...), or None")
        return engine
    if source.in_memory:
        return SerialEngine()
    if _client_exists():
        return DaskEngine()
    entries = source.nnz if source.nnz is not None else source.n_blocks * source.block_entries
    return SerialEngine() if entries <= SERIAL_ENTRIES else DaskEngine()


def _client_exists() -> bool:
    if "distributed" not in sys.modules:  # who has not loaded it has no client
        return False
    from nfs_dask.engine.cluster import current_client

    return current_client() is not None
