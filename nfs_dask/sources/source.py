"""What the rest of the package may ask of data, wherever they lie."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, TypeGuard, runtime_checkable

from nfs_dask.arrays.block import Array, Block, Kind
from nfs_dask.units import MiB

BLOCK_NBYTES = 32 * MiB  # what a source aims at for one block in memory


@runtime_checkable
class Source(Protocol):
    """Rows of documents that can be read block by block, in order, by anyone who holds this object.

    A source travels to workers: it holds paths and small facts, not data (in-memory sources are the exception, and
    say so with ``in_memory``). Blocks are numbered from 0; a block is the unit of work, of retries and of coverage.
    """

    n_rows: int
    n_features: int
    n_blocks: int
    nnz: int | None  # stored entries, where known without reading
    kind: Kind | None  # None: not known before the values have been read
    classes: Array | None  # (C,) sorted labels; None: no labels
    weighted: bool  # whether blocks carry sample weights
    in_memory: bool
    trusted: bool  # canonical, and its values checked, by whoever wrote it
    block_nbytes: int  # most bytes of memory that one Block handed out takes
    block_entries: int  # most entries of one Block handed out
    read_nbytes: int  # bytes that a whole pass reads
    import_nbytes: int  # memory that libraries take which only this source needs
    fingerprint: str | None  # changes when the data or the labels do; None: cannot be told

    def blocks(self, start: int, stop: int) -> Iterator[Block]:
        """The rows of blocks ``start .. stop - 1`` in order; a large block may come in several pieces."""
        ...

    def names(self, columns: Array) -> list[str] | None:
        """Names of the given columns, read without loading the rest; None where the data have no names."""
        ...


@runtime_checkable
class DelayedSource(Source, Protocol):
    """A source whose blocks are Dask tasks already."""

    delayed: list[Any]  # one lazy Block for each block


# Some attributes of a source are worked out when they are asked for, and isinstance() would ask for all of them.


def is_source(thing: Any) -> TypeGuard[Source]:
    """Whether this is a source, rather than something to make one from."""
    return hasattr(type(thing), "blocks") and hasattr(thing, "n_blocks")


def is_delayed(source: Source) -> TypeGuard[DelayedSource]:
    """Whether the blocks are Dask tasks already."""
    return hasattr(source, "delayed")


def is_shipped(source: Source) -> bool:
    """Whether workers cannot read the blocks themselves and get each as the input of a task."""
    return source.in_memory or is_delayed(source)


def origin_of(source: Source) -> Source:
    """The data themselves, where the source is a view of some: run folders are theirs."""
    origin: Source = getattr(source, "origin", source)
    return origin
