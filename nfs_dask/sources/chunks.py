"""What happens to the chunks of a Dask collection inside tasks. Everything is checked against what it really is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nfs_dask.arrays.block import UNLABELLED, Array, Block
from nfs_dask.errors import InputError
from nfs_dask.sources.labels import encode, merge_classes, recode, sample_weights, smallest_codes
from nfs_dask.sources.matrices import CsrRows, DenseRows, MatrixRows, as_rows, countable


def make_block(
    chunks: list[Any],
    codes: Array | None,
    weights: Any,
    number: int,
    first_row: int,
    height: int | None,
    widths: list[int],
) -> Block:
    """One block from chunks that lie side by side."""
    try:
        rows = _side_by_side([as_rows(chunk) for chunk in chunks], widths)
        if height is not None and rows.n_rows != height:
            raise InputError(
                f"X has {rows.n_rows} rows here, where its chunks or its labels say {height}; if the chunks of X "
                "are wrong, call X.compute_chunk_sizes()"
            )
        codes = np.full(rows.n_rows, UNLABELLED, np.int8) if codes is None else np.asarray(codes)
        if len(codes) != rows.n_rows:
            raise InputError(f"X has {rows.n_rows} rows but y has {len(codes)} labels; cut both at the same rows")
        weights = None if weights is None else sample_weights(weights, rows.n_rows)
    except InputError as error:
        raise InputError(f"block {number} (rows from {first_row}): {error}") from None
    indptr, indices, data, full = rows.rows(0, rows.n_rows)
    return Block(indptr, indices, data, codes, rows.n_features, weights, first_row, number, full)


def with_folds(block: Block, folds: Array) -> Block:
    """The block with the fold of each row beside it."""
    if len(folds) != block.n_rows:
        raise InputError(f"block {block.number} has {block.n_rows} rows but {len(folds)} folds; cut both alike")
    return replace(block, folds=folds)


def _side_by_side(parts: list[MatrixRows], widths: list[int]) -> MatrixRows:
    found = [part.n_features for part in parts]
    if found != widths:
        raise InputError(
            f"X has chunks of {found} columns here, where it says {widths}; every chunk needs the columns of X"
        )
    if len(parts) == 1:
        return parts[0]
    if len({part.n_rows for part in parts}) > 1:
        raise InputError(f"the chunks of X side by side have {[part.n_rows for part in parts]} rows")
    arrays = [part.values for part in parts if isinstance(part, DenseRows)]
    if len(arrays) == len(parts):
        return DenseRows(np.hstack(arrays))
    from scipy import sparse  # only for data that were cut along the columns

    matrices = []
    for part in parts:
        indptr, indices, data, _ = part.rows(0, part.n_rows)
        matrices.append(sparse.csr_array((data, indices, indptr), shape=(part.n_rows, part.n_features)))
    whole = sparse.hstack(matrices, format="csr")
    return CsrRows(whole.indptr, whole.indices, whole.data, int(whole.shape[1]))


def weigh(chunks: list[Any], block: Block) -> tuple[int, int, int, bool]:
    """Rows, most entries and bytes of a block, and whether it came dense; a chunk that was copied stays beside it.

    Plans take these bytes twice: with half of a chunk that was not, for the one that Dask makes meanwhile.
    """
    parts = [as_rows(chunk) for chunk in chunks]
    if all(isinstance(part, CsrRows) for part in parts):
        return block.n_rows, block.nnz, block.nbytes, False
    cells = block.n_rows * block.n_features
    entry_nbytes = max(part.entry_nbytes for part in parts)
    held = sum(part.nbytes for part in parts) // (2 if _is_shared(*parts) else 1)
    return block.n_rows, cells, held + cells * entry_nbytes + (block.n_rows + 1) * 20, True


def _is_shared(first: MatrixRows, *others: MatrixRows) -> bool:
    """Whether a block of these has the values of a dense array where they are."""
    if others or not isinstance(first, DenseRows):
        return False
    return bool(first.values.flags.c_contiguous) and countable(first.values[:0]).dtype == first.dtype


@dataclass(frozen=True)
class PartLabels:
    """What is known of some parts of y that follow one another."""

    classes: Array  # sorted
    lengths: list[int]
    codes: list[Array] | None  # of each part under these classes; None: too many to bring along


def part_labels(part: Any, where: str, most: int) -> PartLabels:
    """Of one part of a column, with its codes if they are not more than ``most``."""
    try:
        classes, codes = encode(part)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    kept = [smallest_codes(codes, len(classes))] if len(codes) <= most else None
    return PartLabels(classes, [len(codes)], kept)


def merged(parts: list[PartLabels]) -> PartLabels:
    classes = merge_classes(part.classes for part in parts)
    codes: list[Array] | None = []
    for part in parts:
        if part.codes is None or codes is None:
            codes = None
        else:
            codes.extend(recode(own, part.classes, classes) for own in part.codes)
    return PartLabels(classes, [n for part in parts for n in part.lengths], codes)


def height(chunk: Any) -> int:
    return int(chunk.shape[0])
