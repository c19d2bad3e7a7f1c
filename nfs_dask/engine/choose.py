"""Which engine runs a pass when the user names none."""

from __future__ import annotations

import sys

from nfs_dask.documents.document_source import DocumentSource
from nfs_dask.engine.engine import Engine
from nfs_dask.engine.folding import SERIAL_ENTRIES
from nfs_dask.engine.serial import SerialEngine
from nfs_dask.errors import InputError
from nfs_dask.sources.source import Source
from nfs_dask.units import MiB

SMALL_TEXT = 32 * MiB  # the same for documents, of which less are counted before a cluster of threads has started


def choose_engine(engine: Engine | None, data: Source | DocumentSource | None) -> Engine:
    """The engine given; else the current client's, for data that are not in memory; else what suits this machine.

    In-memory input runs serially. Data on disk, rows or documents, run serially while they are small, and on threads of
    this process beyond, so that a script needs no ``__main__`` guard. So do partitions of a Dask collection, None,
    which such threads compute anyway.
    """
    if engine is not None:
        if not isinstance(engine, Engine):
            raise InputError(f"engine={engine!r}; give nfs_dask.SerialEngine(), nfs_dask.DaskEngine(...), or None")
        return engine
    if data is not None and data.in_memory:
        return SerialEngine()
    if not _client_exists() and _is_small(data):
        return SerialEngine()
    from nfs_dask.engine.distributed import DaskEngine

    return DaskEngine()


def _is_small(data: Source | DocumentSource | None) -> bool:
    if isinstance(data, Source):
        return data.about_entries <= SERIAL_ENTRIES
    return data is None or (data.nbytes is not None and data.nbytes <= SMALL_TEXT)


def _client_exists() -> bool:
    if "distributed" not in sys.modules:  # who has not loaded it has no client
        return False
    from nfs_dask.cluster.finding import current_client

    return current_client() is not None
