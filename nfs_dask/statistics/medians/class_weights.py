"""Rows and weights of each class, and sums that are kept in two doubles, as the statistics of medians share them.

Without sample weights every row counts 1, in int64. Sample weights add up in *pairs*: a double and, under the name with
``_low``, what rounding took from it. Whole weights stay exact in them, and real ones keep about 32 digits. Where
differences of large sums matter, a third double is kept under the name with ``_least``.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nfs_dask.arrays.block import Array, Block
from nfs_dask.arrays.compiling import kernel
from nfs_dask.arrays.doubles import Pair, distil, two_sum
from nfs_dask.arrays.exact_kernels import gather
from nfs_dask.errors import InputError
from nfs_dask.statistics.statistic import State

LOW, LEAST = "_low", "_least"


def no_rows(n_classes: int) -> dict[str, Array]:
    """The totals of no rows: all rows, those of positive and of fractional weight, and the weight of each class."""
    counts = {name: np.zeros(n_classes, np.int64) for name in ("rows", "present", "fractional")}
    return {**counts, "weight": np.zeros(n_classes), "weight_low": np.zeros(n_classes)}


def add_rows(totals: dict[str, Array], block: Block) -> None:
    """Add the rows of a block to `no_rows`, in place."""
    counts = (totals[name] for name in ("rows", "present", "fractional"))
    high, low = totals["weight"], totals["weight_low"]
    _add_class_weights(block.codes.astype(np.int64), row_weights(block), *counts, high, low)
    _refuse_endless(high)
    high[:], low[:] = two_sum(high, low)


def row_weights(block: Block) -> Array:
    """The weight of each row as a double, 1 where none are given; what a double cannot hold is refused."""
    if block.weights is None:
        return np.ones(block.n_rows)
    weights = block.weights.astype(np.float64)
    changed = weights != block.weights if block.weights.dtype.kind == "f" else weights.astype(np.int64) != block.weights
    if changed.any():
        row = int(np.argmax(changed))
        raise InputError(
            f"sample weight {block.weights[row]} in {block.row_in_words(row)}: medians take "
            "whole weights up to 2^53; divide all weights by a common factor"
        )
    return weights


def check_representable(block: Block) -> None:
    """Refuse whole numbers that a double cannot hold: their medians would be those of other numbers."""
    if block.data.dtype.kind == "f" or block.data.dtype.itemsize < 8:
        return
    bad = _first_rounded(block.data)
    if bad >= 0:
        raise InputError(
            f"value {block.data[bad]} in {block.where(bad)}: medians take whole numbers that float64 holds exactly, "
            "such as all up to 2^53; subtract a constant or scale them down"
        )


def merged(left: State, right: State) -> State:
    """Both added up, pairs as pairs; a name that only one side has counts as zero on the other."""
    with np.errstate(over="ignore", invalid="ignore"):  # what is too large comes out as no number, and is refused
        state = State(_merged(left.arrays, right.arrays), _merged(left.totals, right.totals))
    _refuse_endless(state.totals["weight"])
    return state


def _refuse_endless(weight: Array) -> None:
    if not np.isfinite(weight).all():
        raise InputError("sample weights add up to more than a float holds; scale them down")


def _merged(left: Mapping[str, Array], right: Mapping[str, Array]) -> dict[str, Array]:
    out: dict[str, Array] = {}
    for name in (*left, *(name for name in right if name not in left)):
        if name.endswith((LOW, LEAST)):
            continue
        if name not in left or name not in right:
            only = left if name in left else right
            out.update({part: only[part].copy() for part in (name, name + LOW, name + LEAST) if part in only})
        elif name + LEAST in left:
            triple = distil([*triple_of(left, name), *triple_of(right, name)], 3)
            out.update(zip((name, name + LOW, name + LEAST), triple, strict=True))
        elif name + LOW in left:
            put_pair(out, name, pair_of(left, name) + pair_of(right, name))
        else:
            out[name] = left[name] + right[name]
    return out


def by_column(arrays: dict[str, Array], name: str) -> Array:
    """An array with what belongs to a column side by side, as it is then laid out in memory: its axes in reverse."""
    if not arrays[name].T.flags.c_contiguous:
        arrays[name] = np.asfortranarray(arrays[name])
    return arrays[name].T


def pair_of(arrays: Mapping[str, Array], name: str) -> Pair:
    """The sums kept under a name and the one with ``_low``."""
    return Pair(arrays[name], arrays[name + LOW])


def put_pair(arrays: dict[str, Array], name: str, pair: Pair) -> None:
    """Keep sums under a name and the one with ``_low``."""
    arrays[name], arrays[name + LOW] = pair.hi, pair.lo


def triple_of(arrays: Mapping[str, Array], name: str) -> list[Array]:
    """The sums kept under a name and those with ``_low`` and ``_least``."""
    return [arrays[name], arrays[name + LOW], arrays[name + LEAST]]


@kernel
def _add_class_weights(
    codes: Array, weights: Array, rows: Array, present: Array, fractional: Array, high: Array, low: Array
) -> None:
    """Count the rows of each class, and add up their weights; the second doubles of these are not settled yet."""
    for i in range(len(codes)):
        c, w = codes[i], weights[i]
        rows[c] += 1
        if w > 0:
            present[c] += 1
            if w != np.floor(w):
                fractional[c] += 1
            high[c], low[c] = gather(high[c], low[c], w)


@kernel
def _first_rounded(data: Array) -> int:
    """Position of the first whole number that a double cannot hold; -1 if none."""
    for j in range(len(data)):
        if np.int64(np.float64(data[j])) != data[j]:
            return j
    return -1
