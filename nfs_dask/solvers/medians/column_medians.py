"""Medians of classes and of all classes together, with the dispersions about them and the gains of telling them apart.

Rows of class c weigh w / W_c, so that every class weighs 1. A median is the smallest value at which weights reach half
or, where they are exactly half there, the midpoint of it and the next larger one. Sums are carried in pairs of doubles.

References: SC (Calafiore and Fracastoro 2019) Proposition 2, (14) to (16), Definition 3, (18), (19), Proposition 3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from nfs_dask.arrays.doubles import Pair
from nfs_dask.errors import InputError, NfsDaskError
from nfs_dask.solvers.medians.edges import Brackets
from nfs_dask.solvers.medians.half_weight import Halves
from nfs_dask.solvers.medians.weighted_median import Tails, WeightedMedian
from nfs_dask.solvers.solution import Array

Arrays: TypeAlias = Mapping[str, Array]

_SMALL = 2.0**-500


@dataclass(frozen=True)
class ColumnMedians:
    """Medians of some columns (U). Classes without documents have zeros and take no part.

    ``dispersions`` are averages of |x - median| under the weights of a class, ``pooled_dispersions`` the sums over
    classes of those about the common median, and ``gains`` how much less it is about medians of their own.
    """

    weight: Array  # (C,)
    rows: int
    centers: Array  # (C, U)
    pooled: Array  # (U,)
    dispersions: Array  # (C, U)
    pooled_dispersions: Array  # (U,)
    gains: Array  # (U,) zero or more
    absolute: Pair | None  # (C,) sum of weight * |x| over these columns, where it is known


@dataclass(frozen=True)
class Medians:
    """Medians of all features: those in ``columns`` as listed, those in none zero, without gain.

    ``settled`` is the sum, over the features that are not listed and over classes, of their dispersions about 0.
    """

    n_features: int
    weight: Array  # (C,)
    rows: int
    columns: Array  # (U,) int64, ascending
    centers: Array  # (C, U)
    pooled: Array  # (U,)
    dispersions: Array  # (C, U)
    pooled_dispersions: Array  # (U,)
    gains: Array  # (U,)
    settled: float


# Finishing


def from_sample(arrays: Arrays, totals: Arrays, absolute: bool = True) -> ColumnMedians:
    """Medians of the columns of a `RowSample` that holds every row; on request with sums of absolute values."""
    sample, taken = arrays["sample"], totals["sample_weights"]
    seen = np.flatnonzero(totals["present"])
    n_columns, counts = sample.shape[2], totals["present"][seen]
    if (counts > sample.shape[1]).any():
        raise NfsDaskError("this sample has not all rows; medians of all rows need further passes")
    starts = np.cumsum(counts) - counts
    values = np.empty((n_columns, int(counts.sum())))
    weighted = bool((taken[taken > 0] != 1).any())
    weights = np.empty_like(values) if weighted else None
    for c, start, n in zip(seen, starts, counts, strict=True):
        rows = np.flatnonzero(taken[c] > 0)
        part = values[:, start : start + n]
        part[:] = sample[c, rows].T
        part += 0.0  # a negative zero is a zero
        if weights is None:
            part.sort(axis=1)
        else:
            order = np.argsort(part, axis=1, kind="stable")
            part[:] = np.take_along_axis(part, order, axis=1)
            weights[:, start : start + n] = taken[c, rows][order]
    nothing = np.zeros((len(seen), n_columns))
    tails = Tails(Pair.of(nothing), np.zeros((2, *nothing.shape)))
    wide = np.ones(n_columns, np.int64)
    middle = WeightedMedian(
        halves=Halves.of(totals, seen),
        values=values,
        value_weights=weights,
        starts=starts[:, None] * wide,
        counts=counts[:, None] * wide,
        points=nothing[:, None][:, :0],
        point_weights=Pair.of(nothing[:, None][:, :0]),
        below=tails,
        above=tails,
        following=np.full((len(seen), n_columns), np.inf),
    )
    found = _finish(totals, seen, middle, middle)
    if not absolute:
        return found
    about_zero, _ = middle.dispersions(np.zeros(n_columns))
    with np.errstate(over="ignore", invalid="ignore"):  # it is asked for where features were settled, and refused there
        return replace(found, absolute=_scattered(about_zero.sum(axis=1), seen, len(taken)))


def _scattered(pair: Pair, seen: Array, n_classes: int) -> Pair:
    """The same for all classes: zeros for those without documents."""
    high, low = np.zeros((2, n_classes))
    high[seen], low[seen] = pair.hi, pair.lo
    return Pair(high, low)


def from_pinned(arrays: Arrays, totals: Arrays, brackets: Brackets) -> ColumnMedians:
    """Medians of the columns of a `Pinned` state, folded with these brackets."""
    seen = np.flatnonzero(totals["present"])
    own, pooled = (_pinned_view(arrays, totals, brackets, view, seen) for view in range(2))
    if any(middle.starts_above() for middle in (*map(own.of_class, range(len(seen))), pooled)):
        raise _moved()
    found = _finish(totals, seen, own, pooled)
    absolute = Pair(totals["absolute"], totals["absolute_low"]) if "absolute" in totals else None
    return replace(found, absolute=absolute)


def _pinned_view(arrays: Arrays, totals: Arrays, brackets: Brackets, view: int, seen: Array) -> WeightedMedian:
    """The classes within their own brackets, or within those of all classes together."""
    targets = seen if view == 0 else np.full(len(seen), len(brackets.lows) - 1)
    low, high = brackets.lows[targets], brackets.highs[targets]
    weight = Pair(totals["weight"][seen], totals["weight_low"][seen])
    entries = arrays["counts"][view, seen]
    weights = Pair(*_parts(arrays, "weights", (view, seen))) if "weights" in arrays else Pair.of(entries)
    below, at_low, _, at_high, above = (Pair(weights.hi[:, i], weights.lo[:, i]) for i in range(5))
    absent = totals["present"][seen, None] > entries.sum(axis=1)
    zeros = Pair(weight.hi[:, None], weight.lo[:, None]) - weights.sum(axis=1)

    def zeros_where(condition: Array) -> Pair:
        """Weights of the zeros that nobody stored, which lie in one place of each column."""
        there = absent & condition
        return Pair(np.where(there, zeros.hi, 0.0), np.where(there, zeros.lo, 0.0))

    points = (
        at_low + zeros_where(low == 0),
        zeros_where((low < 0) & (high > 0)),
        at_high + zeros_where((low < 0) & (high == 0)),
    )
    flat = brackets.capacities.reshape(-1, brackets.capacities.shape[2])
    following = arrays["next"][view, seen]
    return WeightedMedian(
        halves=Halves.of(totals, seen),
        values=np.ascontiguousarray(arrays["values"].T),
        value_weights=np.ascontiguousarray(arrays["value_weights"].T) if "value_weights" in arrays else None,
        starts=(np.cumsum(flat, axis=0) - flat).reshape(brackets.capacities.shape)[view, seen],
        counts=entries[:, 2].astype(np.int64),
        points=np.stack((low, np.clip(0.0, low, high), high), axis=1),
        point_weights=Pair(np.stack([p.hi for p in points], axis=1), np.stack([p.lo for p in points], axis=1)),
        below=Tails(below + zeros_where(low > 0), _parts(arrays, "sums_below", (view, seen))),
        above=Tails(above + zeros_where(high < 0), _parts(arrays, "sums_above", (view, seen))),
        following=np.where(absent & (high < 0), np.minimum(following, 0.0), following),
    )


def _parts(arrays: Arrays, name: str, where: tuple[int | Array, ...]) -> Array:
    """The doubles that sums are kept in, the largest first: two, or three of weighted rows."""
    return np.stack([arrays[part][where] for part in (name, name + "_low", name + "_least") if part in arrays])


def _finish(totals: Arrays, seen: Array, own: WeightedMedian, pooled: WeightedMedian) -> ColumnMedians:
    """Medians, dispersions and gains, of each class within its own values and of all within the pooled ones."""
    n_classes, n_columns = len(totals["present"]), own.counts.shape[1]
    found = ColumnMedians(
        weight=totals["weight"],
        rows=int(totals["rows"].sum()),
        centers=np.zeros((n_classes, n_columns)),
        pooled=np.zeros(n_columns),
        dispersions=np.zeros((n_classes, n_columns)),
        pooled_dispersions=np.zeros(n_columns),
        gains=np.zeros(n_columns),
        absolute=None,
    )
    if not len(seen):
        return found
    found.pooled[:] = _checked(pooled.medians())
    distances, is_median = pooled.dispersions(found.pooled)
    # Sums next to the smallest doubles are divided where there is room below them.
    scale = np.where(distances.hi.max(axis=0) < _SMALL, 1 / _SMALL, 1.0)
    common = _average(distances, scale, pooled.halves).sum(axis=0)
    together = Pair.of(np.zeros(n_columns))
    for k, c in enumerate(seen):
        one = own.of_class(k)
        found.centers[c] = _checked(one.medians())
        apart = _average(one.dispersions(found.centers[c])[0], scale, one.halves)
        found.dispersions[c] = apart.value[0] / scale
        together = together + apart.sum(axis=0)
    found.pooled_dispersions[:] = common.value / scale
    # A median that all classes share gains nothing; only their weights can tell that from very little.
    found.gains[:] = np.where(is_median.all(axis=0), 0.0, np.maximum((common - together).value / scale, 0.0))
    if not (np.isfinite(found.pooled_dispersions) & np.isfinite(found.gains)).all():
        raise InputError("distances from medians add up beyond the largest double; scale the data down")
    return found


def _average(sums: Pair, scale: Array, halves: Halves) -> Pair:
    """Sums (C, U) times a power of two, divided by the weight of each class."""
    with np.errstate(over="ignore", invalid="ignore"):  # what is too large comes out as no number, and is refused
        return Pair(sums.hi * scale, sums.lo * scale) / Pair(halves.weight.hi[:, None], halves.weight.lo[:, None])


def _checked(middles: Array) -> Array:
    if not np.isfinite(middles).all():
        raise _moved()
    return middles


def _moved() -> NfsDaskError:
    return NfsDaskError(
        "a median is not where it was counted to be; the data changed while they were read: start again with data that "
        "stay as they are"
    )


# Together


def settled_dispersion(totals: Arrays, parts: Sequence[ColumnMedians]) -> float:
    """Sum over classes of the average |x| in all columns of a `ClassSigns` state that are in none of the parts."""
    rest = Pair(totals["absolute"], totals["absolute_low"])
    for part in parts:
        if part.absolute is None:
            raise NfsDaskError("these columns were folded without the totals of |x|; ask the statistic for them")
        rest = rest - part.absolute
    seen = totals["present"] > 0
    weight = Pair(np.where(seen, totals["weight"], 1.0), np.where(seen, totals["weight_low"], 0.0))
    return max(0.0, float((rest / weight).sum().value))


def assemble(n_features: int, parts: Sequence[tuple[Array, ColumnMedians]], signs: Arrays | None) -> Medians:
    """Medians of all features: of groups of columns, and of all others by the totals of a `ClassSigns` pass, if any."""
    known = [part for _, part in parts]
    columns = np.concatenate([np.zeros(0, np.int64), *(columns for columns, _ in parts)]).astype(np.int64)
    order = np.argsort(columns, kind="stable")
    totals = signs if signs is not None else {"weight": known[0].weight, "rows": np.array([known[0].rows])}
    n_classes = len(totals["weight"])

    def joined(name: str, *shape: int) -> Array:
        arrays = [getattr(part, name) for part in known]
        return np.concatenate([np.zeros((*shape, 0)), *arrays], axis=-1)[..., order]

    return Medians(
        n_features=n_features,
        weight=totals["weight"],
        rows=int(totals["rows"].sum()),
        columns=columns[order],
        centers=joined("centers", n_classes),
        pooled=joined("pooled"),
        dispersions=joined("dispersions", n_classes),
        pooled_dispersions=joined("pooled_dispersions"),
        gains=joined("gains"),
        settled=0.0 if signs is None else settled_dispersion(signs, known),
    )
