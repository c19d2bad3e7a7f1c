"""What the rest of the package may ask of data, wherever they lie."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from nfs_dask.arrays.block import Array, Block, Kind
from nfs_dask.errors import InputError
from nfs_dask.progress import Progress
from nfs_dask.units import MiB

if TYPE_CHECKING:
    from nfs_dask.store.row_columns import Annotations
    from nfs_dask.store.term_table import TermTable
    from nfs_dask.store.text_facts import TextFacts
    from nfs_dask.text.column_names import Named
    from nfs_dask.text.strings import Strings

BLOCK_NBYTES = 32 * MiB  # what a source aims at for one block in memory
NAMES_AT_A_TIME = 1 << 16


@dataclass(frozen=True, eq=False)
class Facts:
    """What is known of rows without reading them. A view passes on those of its source, with what it changes."""

    n_rows: int  # -1: not known before they are read
    n_features: int
    n_blocks: int
    nnz: int | None = None  # stored entries, where known without reading
    kind: Kind | None = None  # None: not known before the values have been read
    classes: Array | None = None  # (C,) sorted labels; None: no labels
    weighted: bool = False  # whether blocks carry sample weights
    in_memory: bool = False
    trusted: bool = False  # canonical, and its values checked, by whoever wrote it
    import_nbytes: int = 0  # memory beside blocks: libraries that only this source needs, and what it keeps
    fingerprint: str | None = None  # changes when the data or the labels do; None: cannot be told


@dataclass(frozen=True)
class Sizes:
    """How large blocks are."""

    block_nbytes: int  # most bytes of memory that one Block handed out takes
    block_entries: int  # most entries of one Block handed out
    read_nbytes: int  # bytes that a whole pass reads


def _known(where: str) -> Any:
    """An attribute that is one of the facts, or of the sizes."""
    return property(attrgetter(where))


Mapping: TypeAlias = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]


def one_by_one(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """A `Mapping` without tasks."""
    return [function(item) for item in items]


class Source(ABC):
    """Rows of documents that can be read block by block, in order, by anyone who holds this object.

    A source travels to workers: it holds paths and small facts, not data (in-memory sources are the exception, and
    say so with ``in_memory``). Blocks are numbered from 0; a block is the unit of work, of retries and of coverage.

    It has its `facts` and `sizes`, and reads its `blocks`. What else a source may be able to do is below, with the
    answer of those that are not.
    """

    _facts: Facts
    _sizes: Sizes

    n_rows: int = _known("facts.n_rows")
    n_features: int = _known("facts.n_features")
    n_blocks: int = _known("facts.n_blocks")
    nnz: int | None = _known("facts.nnz")
    kind: Kind | None = _known("facts.kind")
    classes: Array | None = _known("facts.classes")
    weighted: bool = _known("facts.weighted")
    in_memory: bool = _known("facts.in_memory")
    trusted: bool = _known("facts.trusted")
    import_nbytes: int = _known("facts.import_nbytes")
    fingerprint: str | None = _known("facts.fingerprint")
    block_nbytes: int = _known("sizes.block_nbytes")
    block_entries: int = _known("sizes.block_entries")
    read_nbytes: int = _known("sizes.read_nbytes")

    delayed: list[Any] | None = None  # one lazy Block for each block, where these are Dask tasks already
    location: str | None = None  # of the file or store that knows the names of all columns
    text: TextFacts | None = None  # how texts became the rows
    names_sorted: bool = False  # whether columns are in the order of their names

    @property
    def facts(self) -> Facts:
        """What is known of the rows."""
        return self._facts

    @property
    def sizes(self) -> Sizes:
        """How large blocks are; of a Dask collection this may take reading a chunk."""
        return self._sizes

    def trusted_for(self, accepts: Kind) -> bool:
        """Whether values need no further look: they were checked when they were written, and none may be negative."""
        return self.trusted and (accepts == "signed" or self.kind != "signed")

    @abstractmethod
    def blocks(self, start: int, stop: int) -> Iterator[Block]:
        """The rows of blocks ``start .. stop - 1`` in order; a large block may come in several pieces."""

    def outlines(self, start: int, stop: int) -> Iterator[Block]:
        """The same rows for who only asks how long they are and what values they have: columns may be any."""
        return self.blocks(start, stop)

    def rows_of_blocks(self) -> Array | None:
        """How many rows each block has, where they are few and that is known without reading them."""
        return None

    def names(self, columns: Array) -> list[str] | None:
        """Names of the given columns, read without loading the rest; None where the data have no names."""
        return None

    def columns_named(self, names: Iterable[str]) -> dict[str, int] | None:
        """Return the columns of those of some names that are there; None where the data have no names.

        A bounded number of names is held at a time besides those wanted.
        """
        wanted, found = set(names), dict[str, int]()
        with Progress(self.n_features, "looking for names", "names") as progress:
            for first in range(0, self.n_features, NAMES_AT_A_TIME):
                here = self.names(np.arange(first, min(first + NAMES_AT_A_TIME, self.n_features)))
                if here is None:
                    return None
                for column, name in enumerate(here, first):
                    if name in wanted and found.setdefault(name, column) != column:
                        raise InputError(
                            f"columns {found[name]} and {column} are both named {name!r}, so that it does not say "
                            "which is meant; give each a name of its own"
                        )
                progress.advance(len(here))
        return found

    @property
    def names_in_memory(self) -> Named | None:
        """Names of all columns, where they are in memory already."""
        return None

    def strings(self, start: int, stop: int) -> Strings | None:
        """Names of columns ``start .. stop - 1`` as bytes, no two the same; None where names are not had as bytes."""
        return None

    def frequencies(self, start: int, stop: int) -> Array | None:
        """In how many documents terms ``start .. stop - 1`` of the vocabulary were; None where nobody counted."""
        return None

    def table(self) -> TermTable | None:
        """The vocabulary of the texts, with document frequencies; None where none is kept."""
        return None

    def look(self, mapping: Mapping) -> None:
        """Find out as tasks, ``mapping(function, items)``, what takes reading all of the data; most know it already."""
        return

    @property
    def annotations(self) -> Annotations | None:
        """The table of rows, where there is one."""
        return None

    @property
    def origin(self) -> Source:
        """The data themselves, where this is a view of some: run folders are theirs."""
        return self

    @property
    def about_entries(self) -> int:
        """How many entries there are, where that is known, else as if all blocks were as large as the largest."""
        return self.nnz if self.nnz is not None else self.n_blocks * self.block_entries

    @property
    def is_shipped(self) -> bool:
        """Whether workers cannot read the blocks themselves and get each as the input of a task."""
        return self.in_memory or self.delayed is not None
