"""Rows in folds, for cross-validation: which fold a row is in, and views of a source by fold.

Nobody has to hold the folds of all rows: that of a row follows from its number, or came with the data as labels do.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from nfs_dask.arrays.block import UNLABELLED, Array, Block, check_labels, some_rows
from nfs_dask.arrays.hashes import GOLDEN, mixed
from nfs_dask.containers import is_collection
from nfs_dask.errors import InputError
from nfs_dask.files.folder import Folder
from nfs_dask.graphs import added, lazy_tasks, reduced
from nfs_dask.sources.dask_matrices import CollectionSource
from nfs_dask.sources.labels import encode, smallest_codes
from nfs_dask.sources.source import Source
from nfs_dask.sources.stored_labels import column_labels
from nfs_dask.sources.views import View
from nfs_dask.store.hierarchy import Hierarchy
from nfs_dask.units import several

HASH = 1  # changes when rows come to be in other folds than before
MOST_FOLDS = 1 << 10  # so that a class of a fold, of as many classes as there may be, has a number of 32 bits

_PIECE = 1 << 20  # row numbers looked at together


@dataclass(frozen=True, eq=False)
class Folds:
    """The fold of each row, from 0 to ``count - 1``.

    Without ``given``, row r is in the fold that the r-th output of the generator SplitMix64, seeded with 0, leaves when
    divided by ``count``: the same on every machine, for every partition. Who knows the labels of rows knows their
    numbers.
    """

    count: int
    given: Array | None = None  # (n_rows,) the fold of each row; None: by the hash
    numbers: tuple[int, ...] = ()  # of rows in each fold, where blocks have them beside their rows

    def __post_init__(self) -> None:
        if not 2 <= self.count <= MOST_FOLDS:
            raise InputError(f"{self.count} folds; give 2 or more, up to {MOST_FOLDS:,}")
        if self.given is None:
            return
        found = np.unique(self.given)
        if not np.array_equal(found, np.arange(self.count)):
            raise InputError(
                f"folds number {found[:5].tolist()}..., for {self.count} folds; give each of them some rows"
            )
        object.__setattr__(self, "given", self.given.astype(np.uint8 if self.count <= 256 else np.uint16))

    def of(self, block: Block) -> Array:
        """The fold of each row of a block, (n,)."""
        if self.numbers:
            assert block.folds is not None, "lazy folds are beside the rows"
            return block.folds
        if self.given is not None:
            return self.given[block.first_row : block.first_row + block.n_rows]
        return _hashed(block.first_row, block.n_rows, self.count)

    def sizes(self, n_rows: int) -> Array:
        """How many of so many rows are in each fold, (count,)."""
        if self.given is not None:
            return np.bincount(self.given, minlength=self.count)
        if self.numbers:
            return np.array(self.numbers)
        return np.array(_hashed_sizes(n_rows, self.count), np.int64)

    def check(self, source: Source) -> None:
        """Refuse folds that were given for other rows than those of the source."""
        if self.given is not None and len(self.given) != source.n_rows:
            rows = "rows that are not counted" if source.n_rows < 0 else f"{source.n_rows:,} rows"
            raise InputError(
                f"the data have {rows}, and folds were given for {len(self.given):,}; give one fold for each row"
            )

    def describe(self) -> dict[str, Any]:
        """Everything that decides which fold a row is in, as JSON values; of lazy ones their sizes."""
        if self.numbers:
            return {"folds": self.count, "given": list(self.numbers)}
        if self.given is None:
            return {"folds": self.count, "hash": HASH}
        return {"folds": self.count, "given": hashlib.blake2b(self.given.tobytes(), digest_size=16).hexdigest()}


def labelled_folds(labels: Any) -> Folds:
    """Folds from one label for each row: rows with the same label are a fold; these are in the order of the labels."""
    names, codes = encode(labels)
    return _numbered(codes, len(names))


def lazy_folds(labels: Any, source: CollectionSource) -> tuple[Folds, Source]:
    """As `labelled_folds`, of labels of Dask, and the source with the fold of each row beside it."""
    names, parts = source.codes_beside(labels, "folds")
    if not is_collection(parts[0]):
        return _numbered(np.concatenate(parts), len(names)), source
    sizes = reduced("fold-sizes", partial(_sizes, n=len(names)), added, [list(parts)])
    if sizes[-1]:
        raise InputError(f"{several(int(sizes[-1]), 'row has', 'rows have')} no fold; give one for each row")
    used = _used(sizes[:-1])
    table = np.searchsorted(used, np.arange(len(names))).astype(np.uint16)
    folds = Folds(len(used), numbers=tuple(sizes[used].tolist()))
    return folds, source.with_folds(lazy_tasks("folds", [(np.take, table, part) for part in parts], parts))


def _sizes(codes: Array, n: int) -> Array:
    """How many rows have each code, and, last, how many have none."""
    return np.bincount(np.where(codes == UNLABELLED, n, codes), minlength=n + 1)


def _used(sizes: Array) -> Array:
    """The folds that have rows; categories may have none."""
    if len(used := np.flatnonzero(sizes)) < 2:
        raise InputError(f"all rows are in one of {len(sizes)} folds; give at least two that have rows")
    return used


def column_folds(location: str, name: str, n_rows: int) -> Folds:
    """Folds from a column of ``obs`` in a Zarr store, as `labelled_folds`."""
    column = column_labels(Hierarchy.open(Folder.of(location)), name, n_rows)
    count = len(column.classes)
    pieces = (column.read(first, min(first + _PIECE, n_rows)) for first in range(0, n_rows, _PIECE))
    return _numbered(np.concatenate([smallest_codes(piece, count) for piece in pieces]), count)


def _numbered(codes: Array, count: int) -> Folds:
    missing = np.flatnonzero(codes == UNLABELLED)
    if len(missing):
        raise InputError(f"row {missing[0]} has no fold; give one for each row")
    used = _used(np.bincount(codes, minlength=count))
    return Folds(len(used), np.searchsorted(used, codes))


def by_fold(source: Source, folds: Folds, carried: int = 0) -> Source:
    """The source with a class for each class of each fold: class c of fold f is ``f * C + c``, C the number of classes.

    What is counted by such classes is counted for each fold, in one pass. Tasks that read it take ``carried`` bytes
    more than others.
    """
    n_classes = len(_classes(source))
    facts = {"classes": np.arange(folds.count * n_classes), "import_nbytes": source.import_nbytes + carried}
    return Sorted(source, "by fold", Sorting(folds, n_classes), nnz=source.nnz, **facts)


def without_fold(source: Source, folds: Folds, fold: int) -> Source:
    """The rows of all other folds: those that a model is fitted to which this fold judges."""
    if not 0 <= fold < folds.count:
        raise InputError(f"fold {fold} of {folds.count}; give one of 0 to {folds.count - 1}")
    n_rows = source.n_rows if source.n_rows < 0 else source.n_rows - int(folds.sizes(source.n_rows)[fold])
    return Sorted(source, "without fold", Sorting(folds, len(_classes(source)), fold), n_rows=n_rows)


@dataclass(frozen=True)
class Sorting:
    """What becomes of a block of a view: how its rows are sorted into folds, and which of them stay."""

    folds: Folds
    n_classes: int
    fold: int | None = None  # whose rows go; None: all rows stay, under codes that tell their folds

    def of(self, block: Block) -> Block:
        """The block as the view has it."""
        found = self.folds.of(block)
        if self.fold is not None:
            return some_rows(block, found != self.fold)
        check_labels(block, self.n_classes)
        return replace(block, codes=found.astype(np.int32) * np.int32(self.n_classes) + block.codes.astype(np.int32))


class Sorted(View):
    """Rows of a source, by fold; made by `by_fold` and `without_fold`."""

    def __init__(self, source: Source, what: str, sorting: Sorting, **changed: Any) -> None:
        folds = sorting.folds
        folds.check(source)
        words = [folds.count, HASH, -1 if sorting.fold is None else sorting.fold]
        chosen = np.concatenate((words, np.zeros(0) if folds.given is None else folds.given)).astype(np.int64)
        super().__init__(source, what, chosen, sorting.of, **changed)
        self.sorting = sorting


def _classes(source: Source) -> Array:
    if source.classes is None:
        raise InputError("rows without labels cannot be validated; give one label for each row")
    return source.classes


@lru_cache(maxsize=4)
def _hashed_sizes(n_rows: int, count: int) -> tuple[int, ...]:
    """How many of so many rows the hash puts into each fold."""
    sizes = np.zeros(count, np.int64)
    for first in range(0, n_rows, _PIECE):
        sizes += np.bincount(_hashed(first, min(_PIECE, n_rows - first), count), minlength=count)
    return tuple(sizes.tolist())


def _hashed(first: int, n: int, count: int) -> Array:
    """The folds of rows ``first .. first + n - 1`` by SplitMix64."""
    x = mixed((np.arange(n, dtype=np.uint64) + np.uint64(first + 1)) * GOLDEN)
    return ((x ^ (x >> np.uint64(31))) % np.uint64(count)).astype(np.int64)
