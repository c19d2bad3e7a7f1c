"""Which engine runs a pass when the user names none."""

from __future__ import annotations

import sys

from nfs_dask.documents.document_source import DocumentSource
from nfs_dask.engine.distributed import DaskEngine
from nfs_dask.engine.engine import Engine
from nfs_dask.engine.serial import SerialEngine
from nfs_dask.errors import InputError
from nfs_dask.sources.source import Source
from nfs_dask.units import MiB

SERIAL_ENTRIES = 20_000_000  # fewer are counted before a second thread has paid for itself


SMALL_TEXT = 32 * MiB  # the same for documents, of which less are counted before a cluster of threads has started


def choose_engine(engine: Engine | None, source: Source) -> Engine:
    """The engine given; else the current client's, for data that are not in memory; else what suits this machine.

    In-memory input runs serially. Data on disk run serially while they are small, and on threads of this process
    beyond, so that a script needs no ``__main__`` guard.
    """
    entries = source.nnz if source.nnz is not None else source.n_blocks * source.block_entries
    return _choose(engine, source.in_memory, entries <= SERIAL_ENTRIES)


def choose_for_documents(engine: Engine | None, documents: DocumentSource) -> Engine:
    """As `choose_engine`, for documents that are still to be read."""
    return _choose(engine, documents.in_memory, documents.nbytes is not None and documents.nbytes <= SMALL_TEXT)


def choose_for_partitions(engine: Engine | None) -> Engine:
    """As `choose_engine`, for partitions of a Dask collection, which threads of this process compute anyway."""
    return _choose(engine, in_memory=False, small=True)


def _choose(engine: Engine | None, in_memory: bool, small: bool) -> Engine:
    if engine is not None:
        if not isinstance(engine, Engine):
            raise InputError(f"engine={engine!r}; give nfs_dask.SerialEngine(), nfs_dask.DaskEngine(...), or None")
        return engine
    if in_memory:
        return SerialEngine()
    if _client_exists():
        return DaskEngine()
    return SerialEngine() if small else DaskEngine()


def _client_exists() -> bool:
    if "distributed" not in sys.modules:  # who has not loaded it has no client
        return False
    from nfs_dask.cluster.finding import current_client

    return current_client() is not None
