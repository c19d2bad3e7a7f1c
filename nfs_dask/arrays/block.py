"""A block: some rows of the data, as CSR, with their class codes and weights."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nfs_dask.arrays import kernels
from nfs_dask.errors import InputError, NfsDaskError

Array: TypeAlias = NDArray[Any]
Kind = Literal["binary", "count", "real", "signed"]

UNLABELLED = -1
_MOST = 2**62  # whole numbers of this size and more are not counted exactly


class Csr(NamedTuple):
    """Some rows, compressed. In ``full`` ones every row has all columns in order, some of them with zeros."""

    indptr: Array  # int64, from 0
    indices: Array
    data: Array
    full: bool = False


class Entries(NamedTuple):
    """The entries of some rows, for kernels, which only read them."""

    indptr: Array  # int64, from 0
    indices: Array
    data: Array
    codes: Array  # int32


@dataclass(frozen=True, slots=True)
class Block:
    """Rows ``first_row .. first_row + n_rows - 1`` of the data. Never holds more than its own rows.

    ``indptr`` starts at 0. ``codes`` numbers the classes from 0; ``UNLABELLED`` marks a row without a label.
    A canonical block has strictly increasing columns within each row. Zeros may be stored like other values.

    In a ``full`` block every row has all columns in order, so ``data.reshape(n_rows, n_features)`` is the matrix. Its
    ``indices`` are shared with other blocks, and read-only. Only this package makes such blocks, from dense data.
    """

    indptr: Array  # (n_rows + 1,) int64
    indices: Array  # (nnz,) any integer type
    data: Array  # (nnz,) any number type
    codes: Array  # (n_rows,) any integer type
    n_features: int
    weights: Array | None = None  # (n_rows,) int64 or float64
    first_row: int = 0
    number: int = 0  # which block of the source, for messages
    full: bool = False
    folds: Array | None = None  # (n_rows,) for cross-validation, where they came with the data

    @property
    def n_rows(self) -> int:
        return len(self.indptr) - 1

    @property
    def nnz(self) -> int:
        return len(self.indices)

    @property
    def nbytes(self) -> int:
        weights = 0 if self.weights is None else self.weights.nbytes
        return self.indptr.nbytes + self.indices.nbytes + self.data.nbytes + self.codes.nbytes + weights

    @property
    def entries(self) -> Entries:
        """The entries as kernels take them: read-only, and codes of one type, as each kind is compiled for itself."""
        codes = self.codes.astype(np.int32, copy=False)
        pointers = np.ascontiguousarray(self.indptr)
        return Entries(*map(kernels.read_only, (pointers, self.indices, self.data, codes)))

    @property
    def matrix(self) -> Array:
        """The values (n_rows, n_features) of a full block, read-only."""
        return np.asarray(kernels.read_only(self.data.reshape(self.n_rows, self.n_features)))

    def where(self, entry: int) -> str:
        """Name an entry the way a user can find it: row and column of the data."""
        row = int(np.searchsorted(self.indptr, entry, side="right")) - 1
        return f"{self.row_in_words(row)}, column {int(self.indices[entry])}"

    def row_in_words(self, row: int) -> str:
        """Name a row of the data; where nobody knows how many rows were before the block, of the block."""
        of = f" of block {self.number}" if self.number and not self.first_row else ""
        return f"row {self.first_row + row}{of}"

    def __reduce__(self) -> Any:
        """Columns that say nothing do not travel."""
        values = [getattr(self, field.name) for field in fields(self)]
        if self.full:
            values[1] = None
        return _unpacked, tuple(values)


def _unpacked(indptr: Array, indices: Array | None, data: Array, codes: Array, n_features: int, *rest: Any) -> Block:
    columns = all_columns(len(indptr) - 1, n_features) if indices is None else indices
    return Block(indptr, columns, data, codes, n_features, *rest)


def column_type(n_features: int) -> np.dtype[Any]:
    """The type that columns are numbered in."""
    return np.dtype(np.int32 if n_features < 2**31 else np.int64)


def full_rows(values: Array) -> Csr:
    """A dense array as rows that have all columns; no value is copied where the array is contiguous."""
    n_rows, n_features = values.shape
    indptr = np.arange(n_rows + 1, dtype=np.int64) * n_features
    return Csr(indptr, all_columns(n_rows, n_features), values.reshape(-1), True)


def all_columns(n_rows: int, n_features: int) -> Array:
    """The numbers of all columns, once for each row: made once for all blocks of that width, and read-only."""
    longest = longest_columns(n_features)
    columns = longest[0]
    if len(columns) < n_rows * n_features:
        columns = np.tile(np.arange(n_features, dtype=column_type(n_features)), n_rows)
        columns.flags.writeable = False
        longest[0] = columns
    return columns[: n_rows * n_features]


@lru_cache(maxsize=2)  # of the data, and of a choice of their columns
def longest_columns(n_features: int) -> list[Array]:
    """A place for the longest such array."""
    return [np.zeros(0, column_type(n_features))]


def empty_block(n_features: int) -> Block:
    """A block without rows."""
    nothing = np.zeros(0, np.uint8)
    return Block(np.zeros(1, np.int64), nothing.astype(np.int32), nothing, nothing.astype(np.int32), n_features)


def check_structure(block: Block) -> None:
    """Refuse a block whose pointers, columns or codes lie outside of what it says it is.

    Kernels index without bounds checks: nothing from outside reaches one before it has passed here.
    """
    name = f"block {block.number} (rows from {block.first_row})"
    _check_types(block, name)
    indptr, nnz = block.indptr, block.nnz
    ends_meet = len(indptr) > 0 and indptr[0] == 0 and indptr[-1] == nnz
    if len(block.data) != nnz or not ends_meet or np.any(indptr[1:] < indptr[:-1]):
        raise InputError(f"{name}: row pointers do not describe its {nnz} entries; the data are damaged")
    if len(block.codes) != block.n_rows:
        raise InputError(f"{name}: {block.n_rows} rows but {len(block.codes)} labels")
    if block.weights is not None and len(block.weights) != block.n_rows:
        raise InputError(f"{name}: {block.n_rows} rows but {len(block.weights)} sample weights")
    if block.full:
        if nnz != block.n_rows * block.n_features:
            raise NfsDaskError(f"{name}: {nnz} entries cannot be all of its cells; this is a bug, please report it")
    elif nnz:
        # Seen as unsigned, a negative column is a very large one: one look at the entries finds both, unless the data
        # have more columns than the type has numbers that are not negative.
        columns = block.indices.view(f"u{block.indices.itemsize}")
        narrow = block.indices.dtype.kind == "i" and block.n_features > np.iinfo(block.indices.dtype).max
        if int(columns.max()) >= block.n_features or (narrow and int(block.indices.min()) < 0):
            bad = int(np.argmax((block.indices < 0) | (block.indices >= block.n_features)))
            raise InputError(
                f"{block.where(bad)}: the data have {block.n_features} columns, 0 to {block.n_features - 1}"
            )


def _check_types(block: Block, name: str) -> None:
    """Refuse number types that the kernels do not take."""
    data = block.data.dtype
    if data.kind not in "biuf" or not data.isnative or (data.kind == "f" and data.itemsize not in (4, 8)):
        raise InputError(f"{name}: values of type {data}; convert them to whole numbers, float32 or float64")
    for what, array in (("row pointers", block.indptr), ("columns", block.indices), ("labels", block.codes)):
        if array.dtype.kind not in "iu" or not array.dtype.isnative or array.ndim != 1:
            raise InputError(
                f"{name}: {what} of type {array.dtype} in {array.ndim} dimension(s); they are whole numbers"
            )


def check_labels(block: Block, n_classes: int) -> None:
    """Refuse rows without a label, or with a code that stands for no class."""
    if block.n_rows == 0:
        return
    if int(block.codes.min()) < 0 or int(block.codes.max()) >= n_classes:
        row = int(np.argmax((block.codes < 0) | (block.codes >= n_classes)))
        raise InputError(
            f"{block.row_in_words(row)}: label missing; "
            "give every document one of the classes, or leave such documents out"
        )


def check_values(block: Block, kind: Kind) -> None:
    """Refuse values the method cannot take: NaN and infinities always, negative ones unless ``kind`` is signed."""
    bad = kernels.first_refused(block.data, kind != "signed")
    if bad >= 0:
        value = block.data[bad]
        what = "NaN" if value != value else "infinite" if np.isinf(value) else "negative"
        allowed = "finite values" if kind == "signed" else "finite values of zero or more"
        # The first words are those that scikit-learn's checks of estimators look for.
        advice = f"{what if what == 'NaN' else what.capitalize()} values in data passed to it "
        advice += "are no counts; SparseCentroid takes them" if what == "negative" else "can be replaced or left out"
        raise InputError(f"{what} value {value} in {block.where(bad)}; this method takes {allowed}. {advice}")


def distinct(block: Block) -> tuple[Block, bool]:
    """The block with each column at most once in a row, and whether entries had to be added up for that."""
    if block.full or kernels.is_canonical(*block.entries[:2]):
        return block, False
    if block.n_features * 4 <= block.nbytes:  # a mark per column is cheaper than sorting, and no larger than the block
        if not kernels.has_duplicates(*block.entries[:2], np.full(block.n_features, -1, np.int32)):
            return block, False
    found, _ = canonical(block)
    return (found, True) if found.nnz < block.nnz else (block, False)  # whose rows were only unsorted


def canonical(block: Block) -> tuple[Block, bool]:
    """The block with sorted columns and no duplicates, and whether anything had to be mended."""
    if block.full or kernels.is_canonical(*block.entries[:2]):
        return block, False
    from scipy import sparse  # only for data that came unsorted

    # The sum of duplicates may not fit the type that each of them does.
    if block.data.dtype.kind == "f":
        data = block.data.astype(np.float64)
    else:
        if float(np.abs(block.data.astype(np.float64)).sum()) >= _MOST:
            raise _too_large(block)
        data = block.data.astype(np.int64)
    matrix = sparse.csr_matrix(
        (data, block.indices.copy(), block.indptr.copy()), shape=(block.n_rows, block.n_features)
    )
    matrix.sum_duplicates()
    indptr = matrix.indptr.astype(np.int64)
    return replace(block, indptr=indptr, indices=matrix.indices, data=matrix.data), True


def some_rows(block: Block, mask: Array) -> Block:
    """The rows of a block where ``mask`` (n_rows,) is true, in their order."""
    if mask.all():
        return block
    lengths = np.diff(block.indptr)
    entries = np.repeat(mask, lengths)
    data = block.data[entries]
    indptr = np.concatenate(([0], np.cumsum(lengths[mask]))).astype(np.int64)
    indices = all_columns(int(mask.sum()), block.n_features) if block.full else block.indices[entries]
    weights, folds = (None if values is None else values[mask] for values in (block.weights, block.folds))
    codes = block.codes[mask]
    return replace(block, indptr=indptr, indices=indices, data=data, codes=codes, weights=weights, folds=folds)


def row_range(block: Block, first: int, last: int) -> Block:
    """The rows of a block from ``first`` to before ``last``, as a view."""
    indptr = block.indptr[first : last + 1]
    start, stop = int(indptr[0]), int(indptr[-1])
    return replace(
        block,
        indptr=indptr - start,
        indices=block.indices[start:stop],
        data=block.data[start:stop],
        codes=block.codes[first:last],
        weights=None if block.weights is None else block.weights[first:last],
        first_row=block.first_row + first,
        folds=None if block.folds is None else block.folds[first:last],
    )


def without_zeros(block: Block) -> Block:
    """A full block with only the entries that are not zero; another block as it is."""
    if not block.full:
        return block
    mask = block.data != 0
    kept = np.concatenate(([0], np.cumsum(np.count_nonzero(mask.reshape(block.n_rows, block.n_features), axis=1))))
    return replace(block, indptr=kept.astype(np.int64), indices=block.indices[mask], data=block.data[mask], full=False)


def integers_as_integers(block: Block, kind: Kind | None = None) -> Block:
    """Hold whole-number floats as the smallest integers that fit, so that they are counted exactly.

    The decision rests on the block's values alone, never on what was read before it. With a ``kind``, values are
    refused as by `check_values`, which costs floats no second look.
    """
    data = block.data
    if data.dtype.kind == "b":
        return replace(block, data=data.view(np.uint8))
    if data.dtype.kind == "f":
        low, high, rest = kernels.value_range(kernels.read_only(data))
        if kind is not None and not (np.isfinite(rest) and (kind == "signed" or low >= 0)):
            check_values(block, kind)
        if rest != 0 or max(-low, high) >= _MOST:
            return block
        return replace(block, data=data.astype(smallest_integer(int(low), int(high))))
    if kind is not None:
        check_values(block, kind)
    if data.dtype == np.uint64:  # numpy mixes it with signed types into floats
        if data.size and int(data.max()) >= _MOST:
            raise _too_large(block)
        return replace(block, data=data.view(np.int64))
    return block


def _too_large(block: Block) -> InputError:
    return InputError(f"block {block.number}: counts of 2^62 and more cannot be summed exactly; scale them down")


def safe_to_compute(values: Array) -> Array:
    """Values for others: whole numbers signed and of 32 bits at least, whose products and differences are right."""
    if values.dtype.kind not in "iu":
        return values
    return values.astype(np.result_type(values.dtype, np.int32) if values.dtype != np.uint64 else np.int64, copy=False)


def smallest_integer(low: int, high: int) -> np.dtype[Any]:
    """The smallest integer type that holds ``low .. high``."""
    names = ("uint8", "uint16", "uint32", "int64") if low >= 0 else ("int8", "int16", "int32", "int64")
    for name in names:
        if np.iinfo(name).min <= low and high <= np.iinfo(name).max:
            return np.dtype(name)
    raise InputError(f"values from {low} to {high} do not fit 64 bits")


def narrow(numbers: Array) -> Array:
    """Whole numbers of zero or more in the smallest type that holds them, for files that are read once or twice."""
    return numbers.astype(smallest_integer(0, int(numbers.max(initial=0))))
