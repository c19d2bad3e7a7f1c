"""Matrices in ``.npz`` and ``.npy`` files, sparse or dense, read by row ranges without loading the file.

Members that were stored plainly are read where the rows lie. Compressed ones (the default of ``save_npz``) have to be
unpacked from their beginning, so that a run of blocks that starts far inside a file first skips what is before it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from itertools import accumulate, pairwise
from typing import Any, TypeAlias

import numpy as np

from nfs_dask.arrays.block import UNLABELLED, Array, Block, Csr, column_type, full_rows
from nfs_dask.errors import InputError, StoreError
from nfs_dask.files.data_files import PathLike, expand, fingerprint, size_of
from nfs_dask.sources.block_cuts import Cuts, cut_by_entries, cut_evenly
from nfs_dask.sources.labels import encode, encode_as, merge_classes
from nfs_dask.sources.matrices import check_matrix, check_size, countable, kind_of
from nfs_dask.sources.npz_archive import ArchiveMember, open_archive, open_array
from nfs_dask.sources.source import Facts, Sizes, Source

LABELS = ("y", "labels")  # members that hold labels, if nothing else is said
_PIECE = 1 << 20  # row pointers or labels looked at together


Rows: TypeAlias = Callable[[int, int], Csr]  # from the first row to after the last, of a file that is open


class MatrixFile(ABC):
    """One file: its matrix and labels, and where it is cut."""

    path: str
    n_features: int
    dtype: np.dtype[Any]
    nnz: int | None
    entry_nbytes: int
    labels: ArchiveMember | None
    cuts: Cuts

    @abstractmethod
    def rows(self, stack: ExitStack) -> Rows:
        """Reads rows as long as the stack is open."""

    def classes(self) -> Array:
        """The distinct labels, a piece at a time."""
        assert self.labels is not None
        classes = merge_classes(())
        with self.labels.open() as reader:
            for start in range(0, self.cuts.n_rows, _PIECE):
                piece = reader.read(start, min(start + _PIECE, self.cuts.n_rows))
                classes = merge_classes([classes, encode(piece)[0]])
        return classes

    def blocks(self, start: int, stop: int, classes: Array | None) -> Iterator[tuple[int, Csr, Array]]:
        """Of each block its first row in this file, its rows, and codes."""
        with ExitStack() as stack:
            rows = self.rows(stack)
            labels = None if self.labels is None else stack.enter_context(self.labels.open())
            for row, end in pairwise(self.cuts.rows[start : stop + 1].tolist()):
                codes = np.full(end - row, UNLABELLED, np.int8)
                if labels is not None and classes is not None:
                    codes = encode_as(labels.read(row, end), classes)
                yield row, rows(row, end), codes


class CsrFile(MatrixFile):
    """What ``scipy.sparse.save_npz`` writes."""

    def __init__(self, path: str, members: dict[str, ArchiveMember], labels: str | None) -> None:
        missing = [name for name in ("format", "shape", "indptr", "indices", "data") if name not in members]
        if "format" in members:
            _check_format(members["format"])
        if missing:
            raise StoreError(
                f"{path} has no {', '.join(missing)}; read are a sparse matrix written with scipy.sparse.save_npz and "
                f"a dense one named X, this has {', '.join(sorted(members)) or 'nothing'}"
            )
        n_rows, self.n_features = _shape(members["shape"])
        self._parts = [members[name] for name in ("indptr", "indices", "data")]
        indptr, indices, data = self._parts
        _check_sizes(path, n_rows, indptr, indices, data)
        check_matrix((n_rows, self.n_features), data.dtype)
        self.path, self.dtype, self.nnz = path, data.dtype, data.shape[0]
        self.entry_nbytes = indices.dtype.itemsize + max(4, data.dtype.itemsize)
        self.cuts = cut_by_entries(_row_ends(indptr, self.nnz), self.entry_nbytes, path)
        self.labels = _labels(members, labels, path, n_rows)

    def rows(self, stack: ExitStack) -> Rows:
        indptr, indices, data = (stack.enter_context(part.open()) for part in self._parts)
        first_entries = dict(zip(self.cuts.rows.tolist(), self.cuts.entries.tolist(), strict=True))

        def read(row: int, end: int) -> Csr:
            first, last = first_entries[row], first_entries[end]
            pointers = np.append(0, indptr.read(row + 1, end + 1).astype(np.int64) - first)
            return Csr(pointers, _native(indices.read(first, last)), countable(data.read(first, last)))

        return read


class DenseFile(MatrixFile):
    """A ``.npy`` file, or an archive with a dense matrix, of which a block is read at a time."""

    nnz = None

    def __init__(self, path: str, matrix: ArchiveMember, labels: ArchiveMember | None) -> None:
        check_size(*matrix.shape)
        n_rows, self.n_features = matrix.shape
        self.path, self.dtype, self.labels, self._matrix = path, matrix.dtype, labels, matrix
        self.entry_nbytes = column_type(self.n_features).itemsize + max(4, matrix.dtype.itemsize)
        both = self.entry_nbytes + matrix.dtype.itemsize  # the block, and what is read for it
        self.cuts = cut_evenly(n_rows, self.n_features, both)

    def rows(self, stack: ExitStack) -> Rows:
        reader = stack.enter_context(self._matrix.open())
        return lambda row, end: full_rows(countable(reader.rows(row, end)))


def open_file(path: str, labels: str | None) -> MatrixFile:
    """A file by what is in it: its dense matrix is called X, or is the only array of two dimensions."""
    if path.endswith(".npy"):
        if labels is not None:
            raise InputError(f"labels={labels!r} was given, and {path} has no other array; give one label for each row")
        matrix = open_array(path)
        check_matrix(matrix.shape, matrix.dtype)
        return DenseFile(path, matrix, None)
    members = open_archive(path)
    dense = [name for name, member in members.items() if len(member.shape) == 2]
    name = "X" if "X" in members else dense[0] if len(dense) == 1 else None
    if name is None or "indptr" in members:
        return CsrFile(path, members, labels)
    matrix = members[name]
    check_matrix(matrix.shape, matrix.dtype)
    return DenseFile(path, matrix, _labels(members, labels, path, matrix.shape[0]))


class NpzSource(Source):
    """Rows of one or many ``.npz`` or ``.npy`` files, one below the other.

    Parameters
    ----------
    paths : a path, a pattern, or a list of them
    labels : str, optional
        The member that holds the labels; by default ``y`` or ``labels``, where there is one.
    """

    def __init__(self, paths: PathLike | Iterable[PathLike], labels: str | None = None) -> None:
        names = expand(paths)
        told = fingerprint(names, "npz", labels)
        self._files = [open_file(path, labels) for path in names]
        self._check_alike()
        self._first_blocks = [0, *accumulate(file.cuts.n_blocks for file in self._files)]
        self._first_rows = [0, *accumulate(file.cuts.n_rows for file in self._files)]
        check_size(self._first_rows[-1], self._files[0].n_features)
        kinds = {kind_of(file.dtype) for file in self._files}
        labelled = self._files[0].labels is not None
        self._facts = Facts(
            self._first_rows[-1],
            self._files[0].n_features,
            self._first_blocks[-1],
            None if None in (nnz := [file.nnz for file in self._files]) else sum(filter(None, nnz)),
            kinds.pop() if len(kinds) == 1 else None,
            merge_classes(file.classes() for file in self._files) if labelled else None,
            fingerprint=told,
        )
        self._sizes = Sizes(
            max(file.cuts.block_nbytes(file.entry_nbytes) for file in self._files),
            max(file.cuts.block_entries for file in self._files),
            sum(size_of(path) for path in names),
        )

    def _check_alike(self) -> None:
        first = self._files[0]
        for file in self._files[1:]:
            if file.n_features != first.n_features:
                raise InputError(
                    f"{file.path} has {file.n_features} columns and {first.path} has {first.n_features}; files "
                    "that are read together have the same columns"
                )
            if (file.labels is None) != (first.labels is None):
                some, none = (file, first) if first.labels is None else (first, file)
                raise InputError(
                    f"{some.path} holds labels and {none.path} does not; store them in all files, or give y="
                )

    def blocks(self, start: int, stop: int) -> Iterator[Block]:
        for file, number, row in zip(self._files, self._first_blocks, self._first_rows, strict=False):
            first, last = max(start - number, 0), min(stop - number, file.cuts.n_blocks)
            if first >= last:
                continue
            for block, parts in enumerate(file.blocks(first, last, self.classes), number + first):
                offset, (indptr, indices, data, full), codes = parts
                yield Block(indptr, indices, data, codes, self.n_features, None, row + offset, block, full)


def _check_format(member: ArchiveMember) -> None:
    if member.dtype.kind not in "SU" or member.dtype.itemsize > 64 or member.shape:
        raise StoreError(
            f"{member.where} is not the name of a sparse format; write the file with scipy.sparse.save_npz"
        )
    value: bytes | str = member.read().item()
    name = value.decode("ascii", "replace") if isinstance(value, bytes) else str(value)
    if name != "csr":
        raise StoreError(
            f"{member.path} holds a matrix in {name!r} format, and documents are read by rows; in Python: "
            "scipy.sparse.save_npz(new_path, scipy.sparse.load_npz(path).tocsr())"
        )


def _shape(member: ArchiveMember) -> tuple[int, int]:
    if member.shape != (2,) or member.dtype.kind not in "iu":
        raise StoreError(f"{member.where} is not the two whole numbers of a matrix' shape; write the file again")
    n_rows, n_features = (int(n) for n in member.read())
    if min(n_rows, n_features) < 0:
        raise StoreError(f"{member.where} is negative; the file is damaged")
    return n_rows, n_features


def _check_sizes(path: str, n_rows: int, indptr: ArchiveMember, indices: ArchiveMember, data: ArchiveMember) -> None:
    """Refuse arrays that do not belong together, before memory is asked for on their word."""
    if indptr.shape != (n_rows + 1,) or len(data.shape) != 1 or indices.shape != data.shape:
        raise StoreError(
            f"{path} is damaged: {n_rows} rows, but row pointers of shape {indptr.shape}, columns of shape "
            f"{indices.shape} and values of shape {data.shape}"
        )
    if indptr.dtype.kind not in "iu" or indices.dtype.kind not in "iu":
        raise StoreError(f"{path} is damaged: its row pointers or columns are not whole numbers")


def _row_ends(indptr: ArchiveMember, nnz: int) -> Iterator[Array]:
    """The row pointers but the first, a piece at a time, and whether they span the entries."""
    n_rows = indptr.shape[0] - 1
    last = 0
    with indptr.open() as reader:
        if int(reader.read(0, 1)[0]) != 0:
            raise StoreError(f"{indptr.where} does not begin with 0; the file is damaged")
        for start in range(1, n_rows + 1, _PIECE):
            piece = reader.read(start, min(start + _PIECE, n_rows + 1))
            last = int(piece[-1])
            yield piece
    if last != nnz:
        raise StoreError(f"{indptr.where} ends at {last}, but there are {nnz} entries; the file is damaged")


def _labels(members: dict[str, ArchiveMember], name: str | None, path: str, n_rows: int) -> ArchiveMember | None:
    names = LABELS if name is None else (name,)
    found = next((members[n] for n in names if n in members), None)
    if found is None and name is not None:
        raise InputError(f"{path} has no member {name!r} for the labels; it has {', '.join(sorted(members))}")
    if found is not None and found.shape != (n_rows,):
        raise InputError(f"{found.where} has shape {found.shape}; give one label for each of {n_rows} rows")
    return found


def _native(values: Array) -> Array:
    return values.astype(values.dtype.newbyteorder("="), copy=False)
