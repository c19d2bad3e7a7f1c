"""Brackets of medians: edges from a sample, and the cell between edges that is proved to hold each median.

Targets are the median of each class, and last the one of all classes together, each of which weighs 1. A view is a
class as one of them sees it: [0, c] within its own edges, [1, c] within the pooled ones.

References: docs/mathematics.md 5.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from nfs_dask.arrays.doubles import Pair
from nfs_dask.errors import InputError
from nfs_dask.solvers.medians.half_weight import Halves
from nfs_dask.solvers.solution import Array

Arrays: TypeAlias = Mapping[str, Array]

STANDARD_ERRORS = 5.0


@dataclass(frozen=True)
class Brackets:
    """For each target and column an open interval that holds the lower point of its median, or the value itself.

    ``lows == highs`` where it is known: it equals an edge. An interval that reaches to an infinity lies beyond the
    edges. ``capacities`` (2, C, U) are the entries strictly inside, of each view; where the interval is not bounded,
    all that lie beyond.
    """

    lows: Array  # (C + 1, U)
    highs: Array  # (C + 1, U)
    capacities: Array  # (2, C, U) int64

    @property
    def sizes(self) -> Array:
        """Number of values inside the intervals of each column, over all views."""
        return np.asarray(self.capacities.sum(axis=(0, 1)))

    def open(self, most: int) -> Array:
        """Columns that have an interval without bounds, or more than ``most`` values inside and room to look closer."""
        unbounded = ~(np.isfinite(self.lows) & np.isfinite(self.highs)).all(axis=0)
        return np.asarray(unbounded | (self.sizes > most))

    def take(self, columns: Array) -> Brackets:
        """Those of some columns."""
        return Brackets(self.lows[:, columns], self.highs[:, columns], self.capacities[..., columns])

    def put(self, columns: Array, found: Brackets) -> Brackets:
        """With what was found for some columns in place of what was known."""
        out = Brackets(self.lows.copy(), self.highs.copy(), self.capacities.copy())
        out.lows[:, columns], out.highs[:, columns] = found.lows, found.highs
        out.capacities[..., columns] = found.capacities
        return out


# Edges


def sample_edges(arrays: Arrays, totals: Arrays, n_edges: int, z: float = STANDARD_ERRORS) -> Array:
    """Edges (C + 1, n_edges, U) around the medians of a `RowSample`: evenly spaced ranks within z standard errors."""
    sample = arrays["sample"]
    n_classes, _, n_columns = sample.shape
    weights = [totals["sample_weights"][c] for c in range(n_classes)]
    rows = [np.flatnonzero(w > 0) for w in weights]
    seen = [c for c in range(n_classes) if len(rows[c])]
    shares = {c: weights[c][rows[c]] / weights[c].sum() for c in seen}
    variances = {c: 0.25 * float(shares[c] @ shares[c]) for c in seen}
    edges = np.zeros((n_classes + 1, n_edges, n_columns))
    for c in seen:
        edges[c] = _quantiles(sample[c, rows[c]], shares[c], z * math.sqrt(variances[c]), n_edges)
    if seen:
        every = np.concatenate([sample[c, rows[c]] for c in seen])
        share = np.concatenate([shares[c] for c in seen]) / len(seen)
        error = math.sqrt(sum(variances.values())) / len(seen)
        edges[n_classes] = _quantiles(every, share, z * error, n_edges)
    return edges


def _quantiles(values: Array, shares: Array, reach: float, n_edges: int) -> Array:
    """Values (n_edges, U) whose ranks are evenly spaced over 1/2 - reach .. 1/2 + reach of all weights."""
    ranks = np.linspace(0.5 - reach, 0.5 + reach, n_edges) if n_edges > 1 else np.array([0.5])
    last = len(values) - 1
    if (shares == shares[0]).all():
        places = np.clip(np.rint(ranks * len(values) - 0.5), 0, last).astype(np.int64)
        ordered = np.partition(values, np.unique(places), axis=0)
        return ordered[places].astype(np.float64) + 0.0
    out = np.empty((n_edges, values.shape[1]))
    for u in range(values.shape[1]):
        order = np.argsort(values[:, u])
        reached = np.searchsorted(np.cumsum(shares[order]), ranks)
        out[:, u] = values[order[np.clip(reached, 0, last)], u]
    return out + 0.0


def refined_edges(brackets: Brackets, n_edges: int) -> Array:
    """Edges (C + 1, n_edges, U) that divide each interval, the ends included.

    Every other one divides it evenly by the keys of its doubles, so that some rounds pin down any value there is;
    those between divide it evenly as numbers, which takes less of them where values are of about the same size.
    """
    if n_edges < 3:
        raise InputError(f"n_edges={n_edges} cannot divide an interval; give 3 or more")
    largest = np.finfo(np.float64).max
    low, high = np.maximum(brackets.lows, -largest)[:, None], np.minimum(brackets.highs, largest)[:, None]
    n_keys = (n_edges + 3) // 2
    share = np.arange(1, n_edges - n_keys + 1)[:, None] / (n_edges - n_keys + 1)
    as_numbers = np.clip(low * (1 - share) + high * share, low, high)
    return np.sort(np.concatenate((_even_keys(low, high, n_keys), as_numbers), axis=1), axis=1)


def _even_keys(low: Array, high: Array, n: int) -> Array:
    """Doubles from ``low`` to ``high`` (T, 1, U), evenly spaced by their keys."""
    first = float_keys(low).astype(np.uint64)  # from here on modulo 2^64, where differences are right
    whole, rest = np.divmod(float_keys(high).astype(np.uint64) - first, np.uint64(n - 1))
    j = np.arange(n, dtype=np.uint64)[:, None]
    return float_values((first + whole * j + rest * j // np.uint64(n - 1)).astype(np.int64))


def float_keys(values: Array) -> Array:
    """Whole numbers in the order of the doubles, neighbours one apart; both zeros are 0."""
    bits = (np.asarray(values, np.float64) + 0.0).view(np.int64)
    return np.where(bits >= 0, bits, np.int64(-(2**63)) - bits)


def float_values(keys: Array) -> Array:
    """The doubles of some keys."""
    return np.where(keys >= 0, keys, np.int64(-(2**63)) - keys).view(np.float64) + 0.0


# Cells


def find_brackets(arrays: Arrays, totals: Arrays, edges: Array) -> Brackets:
    """The cell of a `ClassCells` state that holds each median, by exact comparison of weights."""
    n_classes, n_columns = edges.shape[0] - 1, edges.shape[2]
    out = Brackets(
        np.zeros((n_classes + 1, n_columns)),
        np.zeros((n_classes + 1, n_columns)),
        np.zeros((2, n_classes, n_columns), np.int64),
    )
    seen = np.flatnonzero(totals["present"])
    if not len(seen):
        return out
    ladders, halves = Ladders.of(edges), Halves.of(totals, seen)
    steps = ladders.steps[seen]
    climbed = _Climbed.of(arrays, totals, seen, steps)
    numbers = np.broadcast_to(np.arange(steps.shape[2]), steps.shape)
    out.lows[seen], out.highs[seen], out.capacities[0, seen] = climbed.bracket(steps, numbers, halves.own)
    together = np.append(edges[-1].T, np.full((n_columns, 1), np.inf), axis=1)[None]
    found = climbed.bracket(together, ladders.pooled[seen], lambda weight: halves.together(weight)[None])
    out.lows[-1:], out.highs[-1:], out.capacities[1, seen] = found
    return out


@dataclass(frozen=True)
class _Climbed:
    """The weights of classes that have documents up to each cell of their ladders, that cell included."""

    weights: Pair  # (K, S, U) with the zeros, which nobody stores
    entries: Array  # (K, S, U) without them

    @classmethod
    def of(cls, arrays: Arrays, totals: Arrays, seen: Array, steps: Array) -> _Climbed:
        """Of a `ClassCells` state, whose classes have these steps (S, U, E + 1)."""
        shape = (2 * steps.shape[2] - 1, *steps.shape[:2])
        entries = sum((arrays[n][:, seen] for n in ("cells", "entries") if n in arrays), np.zeros(shape, np.int64))
        weights = Pair.of(entries)
        if "weights" in arrays:
            weights = Pair(arrays["weights"][:, seen], arrays["weights_low"][:, seen])
            weights = weights + arrays["cells"][:, seen] if "cells" in arrays else weights
        absent = totals["present"][seen, None] > entries.sum(axis=0)
        zeros = Pair(totals["weight"][seen, None], totals["weight_low"][seen, None]) - weights.sum(axis=0)
        zero_cells = 2 * (steps < 0).sum(axis=2) + (steps == 0).any(axis=2)
        below = Pair.of(np.zeros(shape[1:]))
        high, low = np.empty(shape), np.empty(shape)
        for k in range(shape[0]):
            here = absent & (zero_cells == k)
            below = below + (weights.part(k) + Pair(np.where(here, zeros.hi, 0.0), np.where(here, zeros.lo, 0.0)))
            high[k], low[k] = below.hi, below.lo
        return cls(Pair(high, low), np.cumsum(entries, axis=0))

    def bracket(self, edges: Array, steps: Array, reached: Callable[[Pair], Array]) -> tuple[Array, Array, Array]:
        """Return the cells where weights reach half: ends (T, U), or the edge twice, and entries (S, U) inside.

        ``edges`` (T, U, n + 1) end with an infinity, and ``steps`` (S, U, n + 1) are their numbers in the ladders. All
        weight together is known to be enough.
        """

        def cells(places: Array, through: int) -> Array:
            step = np.take_along_axis(steps, np.broadcast_to(places, steps.shape[:2])[:, :, None], axis=2)[:, :, 0]
            return np.minimum(2 * step + through, len(self.entries) - 1)[None]

        def enough(places: Array, through: int) -> Array:
            where = cells(places, through)
            sides = (np.take_along_axis(side, where, axis=0)[0] for side in (self.weights.hi, self.weights.lo))
            return reached(Pair(*sides))

        def entries(places: Array, through: int) -> Array:
            return np.take_along_axis(self.entries, cells(places, through), axis=0)[0]

        first, stop = np.zeros(edges.shape[:2], np.int64), np.full(edges.shape[:2], edges.shape[2] - 1)
        while (first < stop).any():
            middle = (first + stop) // 2
            is_enough = enough(middle, 1)
            first, stop = np.where(is_enough, first, middle + 1), np.where(is_enough, middle, stop)
        between, before = enough(first, 0), np.maximum(first - 1, 0)
        low, high = (np.take_along_axis(edges, places[:, :, None], axis=2)[:, :, 0] for places in (before, first))
        low = np.where(first > 0, low, -np.inf)
        inside = entries(first, 0) - np.where(first > 0, entries(before, 1), 0)
        return np.where(between, low, high), high, np.where(between, inside, 0)


# The edges of a class and those of all classes together in one order, so that a value is looked for once for both


@dataclass(frozen=True)
class Ladders:
    """Of each class, the different ones of its own edges and the pooled ones, ascending: the *steps* of its ladder.

    What equals step j is in cell 2j + 1 of a class, what lies between the steps before and at j in cell 2j.
    """

    steps: Array  # (C, U, E + 1), infinities behind the last
    pooled: Array  # (C, U, B + 1) which step each pooled edge is, and E

    @classmethod
    def of(cls, edges: Array) -> Ladders:
        """Of edges (C + 1, B, U) that ascend along B and may repeat: those of each class, and last the pooled ones."""
        every = [_steps(own.T, edges[-1].T) for own in edges[:-1]]
        return cls(np.stack([steps for steps, _ in every]), np.stack([pooled for _, pooled in every]))


def _steps(own: Array, pooled: Array) -> tuple[Array, Array]:
    """Steps (U, E + 1) of two kinds of edges (U, B), and which ones the second kind are (U, B + 1)."""
    every = np.concatenate((own, pooled), axis=1)
    order = np.argsort(every, axis=1, kind="stable")
    ordered = np.take_along_axis(every, order, axis=1)
    is_new = np.ones(ordered.shape, bool)
    is_new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    numbers = np.cumsum(is_new, axis=1) - 1
    steps = np.full((len(every), every.shape[1] + 1), np.inf)
    np.put_along_axis(steps, numbers, ordered, axis=1)
    places = np.full(steps.shape, every.shape[1])
    np.put_along_axis(places, order, numbers, axis=1)
    return steps, places[:, own.shape[1] :]
