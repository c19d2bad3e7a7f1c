"""First look at a source: how long its rows are, what its values are like, and the columns that go with its rows.

What is known per row goes to scratch files, one set for each run of blocks, so that neither the driver nor a task
ever holds something for every row.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import IO, Any, Protocol

import numpy as np

from nfs_dask.arrays.block import (
    UNLABELLED,
    Array,
    Block,
    Kind,
    canonical,
    check_structure,
    check_values,
    integers_as_integers,
    smallest_integer,
    without_zeros,
)
from nfs_dask.arrays.compiling import kernel
from nfs_dask.errors import InputError
from nfs_dask.files.folder import Folder
from nfs_dask.store.row_columns import Annotations
from nfs_dask.text.strings import Strings

_FLOAT32_WHOLE = 2**24  # whole numbers up to here are exact in float32
_FLOAT64_WHOLE = 2**53


class SurveyedRows(Protocol):
    """What of a source the writing of a store needs."""

    n_features: int
    n_blocks: int
    classes: Array | None
    weighted: bool
    trusted: bool
    read_nbytes: int
    names_sorted: bool

    @property
    def annotations(self) -> Annotations | None: ...

    def blocks(self, start: int, stop: int) -> Iterator[Block]: ...

    def outlines(self, start: int, stop: int) -> Iterator[Block]: ...

    def names(self, columns: Array) -> list[str] | None: ...

    def strings(self, start: int, stop: int) -> Strings | None: ...

    def frequencies(self, start: int, stop: int) -> Array | None: ...


@dataclass(frozen=True, slots=True)
class Values:
    """What a set of values is like. ``float_nbytes`` is the size of the smallest float that holds each as it came."""

    low: int | float = 0
    high: int | float = 0
    whole: bool = True
    float_nbytes: int = 0

    @classmethod
    def of(cls, block: Block) -> Values:
        """Of one block, before it is known what the others hold."""
        nbytes = block.data.dtype.itemsize if block.data.dtype.kind == "f" else 0
        data = integers_as_integers(block).data
        if not len(data):
            return cls(float_nbytes=nbytes)
        if data.dtype.kind == "f":
            return cls(float(data.min()), float(data.max()), False, nbytes)
        low, high = int(data.min()), int(data.max())
        return cls(low, high, True, nbytes or (8 if max(-low, high) > _FLOAT32_WHOLE else 0))

    def __or__(self, other: Values) -> Values:
        return Values(
            min(self.low, other.low),
            max(self.high, other.high),
            self.whole and other.whole,
            max(self.float_nbytes, other.float_nbytes),
        )

    def kind(self) -> Kind:
        if self.low < 0:
            return "signed"
        return "real" if not self.whole else "binary" if self.high <= 1 else "count"

    def dtype(self) -> str:
        """The type to store them in: a signed one that others can compute in, or the float they came in.

        Readers that multiply or add narrower counts would get wrong ones without a word. Compressed, the bytes that
        are zero cost next to nothing.
        """
        if self.whole:
            return "int32" if self.fits("int32") else "int64"
        return "float32" if self.float_nbytes <= 4 else "float64"

    def narrow_dtype(self) -> str:
        """The smallest type that holds them: what passes over a store see, which are faster for it."""
        stored = np.dtype(self.dtype())
        smallest = smallest_integer(int(self.low), int(self.high)) if self.whole else stored
        return (smallest if smallest.itemsize < stored.itemsize else stored).name

    def widened(self, dtype: str) -> str:
        """The type that holds these values and all that ``dtype`` may hold, of those that `dtype()` chooses from."""
        if self.fits(dtype):
            return dtype
        if not self.whole or np.dtype(dtype).kind == "f":
            return "float64"
        return "int32" if self.fits("int32") and np.can_cast(dtype, "int32") else "int64"

    def fits(self, dtype: str) -> bool:
        """Whether every value can be stored as ``dtype`` without a change."""
        if np.dtype(dtype).kind != "f":
            info = np.iinfo(dtype)
            return self.whole and info.min <= self.low and self.high <= info.max
        if self.whole:
            return max(-self.low, self.high) <= (_FLOAT32_WHOLE if dtype == "float32" else _FLOAT64_WHOLE)
        return dtype == "float64" or self.float_nbytes <= 4


@dataclass(frozen=True, slots=True)
class SurveyTask:
    """Blocks ``start .. stop - 1`` of a source, looked at by one task."""

    source: SurveyedRows
    start: int
    stop: int
    scratch: str  # location of the scratch folder
    number: int
    codes: Array | None  # stored code of each class of the source
    weighted: bool
    regions: int = 0  # of as many columns each, whose lengths are wanted


@dataclass(slots=True)
class Survey:
    """What was found in one run of blocks."""

    number: int
    n_rows: int = 0
    entries: list[int] = field(default_factory=list)  # of each block
    values: Values = Values()
    mended: int = 0  # blocks that came unsorted or with duplicates
    whole_weights: bool = True

    @property
    def nnz(self) -> int:
        return sum(self.entries)


def checked_blocks(source: SurveyedRows, blocks: Iterator[Block]) -> Iterator[tuple[Block, bool]]:
    """Blocks of a source, canonical and without what a store must not hold, and whether each had to be mended."""
    for block in blocks:
        if block.n_features != source.n_features:
            raise InputError(
                f"block {block.number} has {block.n_features} columns; the source said {source.n_features}"
            )
        if source.trusted:
            yield block, False
        else:
            check_structure(block)
            check_values(block, "signed")
            yield canonical(without_zeros(block))


def survey(task: SurveyTask) -> Survey:
    """Look at one run of blocks. Doing it again leaves the same files and gives the same answer."""
    found = Survey(task.number, entries=[0] * (task.stop - task.start))
    with ExitStack() as stack:
        files = [
            stack.enter_context(Folder(task.scratch).scratch.create(f"{task.number}.{name}")) for name in _columns(task)
        ]
        source = task.source
        outlined = source.trusted and task.regions < 2  # else columns are looked at, for what is wrong or their region
        read = source.outlines if outlined else source.blocks
        for block, mended in checked_blocks(source, read(task.start, task.stop)):
            _write_rows(task, block, found, files)
            found.entries[block.number - task.start] += block.nnz
            found.n_rows += block.n_rows
            found.values |= Values.of(block)
            found.mended += mended
    return found


def read_scratch(scratch: str, number: int, name: str, start: int, stop: int) -> Array:
    """Rows ``start .. stop - 1`` of one scratch file."""
    dtype = _TYPES[name.partition("-")[0]]
    content: bytes = Folder(scratch).read(f"{number}.{name}", start * dtype.itemsize, stop * dtype.itemsize)
    return np.frombuffer(content, dtype)


_TYPES: dict[str, np.dtype[Any]] = {
    "starts": np.dtype("<i8"),
    "codes": np.dtype("<i4"),
    "weights": np.dtype("<f8"),
    "lengths": np.dtype("<i8"),
}


def _columns(task: SurveyTask) -> list[str]:
    lengths = [f"lengths-{region}" for region in range(task.regions)]
    return ["starts"] + ["codes"] * (task.codes is not None) + ["weights"] * task.weighted + lengths


def _write_rows(task: SurveyTask, block: Block, found: Survey, files: list[IO[bytes]]) -> None:
    starts = block.indptr[:-1].astype("<i8") + found.nnz
    rows = [starts]
    if task.codes is not None:
        rows.append(_stored_codes(task.codes, block))
    if task.weighted:
        rows.append(_checked_weights(block, found))
    if task.regions:
        rows.extend(_region_lengths(block, task.regions))
    for file, values in zip(files, rows, strict=True):
        file.write(values.tobytes())


def _stored_codes(table: Array, block: Block) -> Array:
    if not len(table):
        return np.full(block.n_rows, UNLABELLED, "<i4")
    codes = block.codes.astype(np.int64)
    bad = (codes < UNLABELLED) | (codes >= len(table))
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(f"{block.row_in_words(row)}: code {codes[row]} for {len(table)} classes")
    return np.append(table, UNLABELLED)[codes].astype("<i4")  # -1 picks the last


def _region_lengths(block: Block, regions: int) -> Array:
    """The sum of the counts of each region in each row, (regions, n_rows)."""
    counts = integers_as_integers(block).data
    if counts.dtype.kind == "f":
        raise InputError(
            f"block {block.number} has values that are not whole numbers, and regions have lengths only where "
            "terms are counted; give counts, or say that these are weights (tfidf=True)"
        )
    lengths = np.zeros((regions, block.n_rows), "<i8")
    _add_lengths(block.indptr, block.indices, counts, block.n_features // regions, lengths)
    return lengths


def _checked_weights(block: Block, found: Survey) -> Array:
    given = block.weights
    if given is None:
        raise InputError(
            f"block {block.number} has no sample weights and others have; give a weight to every row or to none"
        )
    weights = given.astype("<f8")
    bad = ~np.isfinite(weights) | (weights < 0)
    whole = given.dtype.kind in "iub"
    if whole:
        bad |= weights > _FLOAT64_WHOLE
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"{block.row_in_words(row)}: sample weight {given[row]}; "
            "weights are finite numbers of zero or more, whole ones up to 2^53"
        )
    found.whole_weights &= whole
    return weights


@kernel
def _add_lengths(indptr, indices, counts, width, lengths):
    """lengths[region, row] += the counts of the row's entries in the region's ``width`` columns."""
    for i in range(len(indptr) - 1):
        for j in range(indptr[i], indptr[i + 1]):
            lengths[indices[j] // width, i] += counts[j]
