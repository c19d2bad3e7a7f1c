"""Where medians are looked for: edges from a sample, and the cell between edges that is proved to hold each median.

Targets are the median of each class, and last the one of all classes together, each of which weighs 1. A view is a
class as one of them sees it: [0, c] within its own edges, [1, c] within the pooled ones.

References: docs/mathematics.md 5.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
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
        """How many values are inside the intervals of each column, over all views."""
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
    own = _View.of(arrays, totals, 0, seen, edges[seen])
    pooled = _View.of(arrays, totals, 1, seen, edges[[n_classes] * len(seen)])
    found = own.first_half()
    out.lows[seen], out.highs[seen] = _interval(edges[seen], found)
    out.capacities[0, seen] = own.entries_in(found)
    together = pooled.first_half_together()[None]
    out.lows[-1:], out.highs[-1:] = _interval(edges[-1:], together)
    out.capacities[1, seen] = pooled.entries_in(np.repeat(together, len(seen), axis=0))
    return out


def _interval(edges: Array, cells: Array) -> tuple[Array, Array]:
    """Ends (T, U) of the given cells between edges (T, B, U); a cell at an edge is that value."""
    nowhere = np.full_like(edges[:, :1], np.inf)
    bounds = np.concatenate((-nowhere, edges, nowhere), axis=1)
    lows = np.take_along_axis(bounds, (cells[:, None] + 1) // 2, axis=1)[:, 0]
    highs = np.take_along_axis(bounds, cells[:, None] // 2 + 1, axis=1)[:, 0]
    return lows, highs


@dataclass(frozen=True)
class _View:
    """The cells of the classes that have documents, as one kind of target sees them."""

    halves: Halves
    entries: Array  # (S, K, U) without the zeros, which nobody stores
    weights: tuple[Array, Array] | None  # the same as pairs, of weighted rows
    zeros: Pair  # (S, U)
    zero_cells: Array  # (S, U)

    @classmethod
    def of(cls, arrays: Arrays, totals: Arrays, view: int, seen: Array, edges: Array) -> _View:
        """Of one view of a `ClassCells` state; ``edges`` (S, B, U) are those of each class in it."""
        weight = Pair(totals["weight"][seen], totals["weight_low"][seen])
        shape = (len(seen), 2 * edges.shape[1] + 1, edges.shape[2])
        entries = sum((arrays[n][view, seen] for n in ("cells", "entries") if n in arrays), np.zeros(shape, np.int64))
        weights = None
        if "weights" in arrays:
            pairs = Pair(arrays["weights"][view, seen], arrays["weights_low"][view, seen])
            pairs = pairs + arrays["cells"][view, seen] if "cells" in arrays else pairs
            weights = (pairs.hi, pairs.lo)
        stored = Pair.of(entries.sum(axis=1)) if weights is None else Pair(*weights).sum(axis=1)
        absent = totals["present"][seen, None] > entries.sum(axis=1)
        zeros = Pair(weight.hi[:, None], weight.lo[:, None]) - stored
        below = (edges < 0).sum(axis=1)
        return cls(
            Halves.of(totals, seen),
            entries,
            weights,
            Pair(np.where(absent, zeros.hi, 0.0), np.where(absent, zeros.lo, 0.0)),
            2 * below + (edges == 0).any(axis=1),
        )

    def _of_cell(self, k: int) -> Pair:
        """Weights (S, U) in the k-th cells, zeros included."""
        if self.weights is None:
            stored = Pair.of(self.entries[:, k])
        else:
            stored = Pair(self.weights[0][:, k], self.weights[1][:, k])
        here = self.zero_cells == k
        return stored + Pair(np.where(here, self.zeros.hi, 0.0), np.where(here, self.zeros.lo, 0.0))

    def first_half(self) -> Array:
        """For each class the cell (S, U) at which its weights reach half."""
        below = self._of_cell(0)
        found = np.zeros(below.hi.shape, np.int64)
        for k in range(1, self.entries.shape[1]):
            found += ~self.halves.own(below)
            below = below + self._of_cell(k)
        return found

    def first_half_together(self) -> Array:
        """The cell (U,) at which the weights of all classes together reach half."""
        below = self._of_cell(0)
        found = np.zeros(below.hi.shape[1], np.int64)
        rest = np.arange(len(found))
        for k in range(1, self.entries.shape[1]):
            rest = rest[~self.halves.together(Pair(below.hi[:, rest], below.lo[:, rest]))]
            found[rest] += 1
            below = below + self._of_cell(k)
        return found

    def entries_in(self, cells: Array) -> Array:
        """How many entries (S, U) lie strictly inside of the given cells: none in those that are one value."""
        inside = np.take_along_axis(self.entries, cells[:, None], axis=1)[:, 0]
        return np.where(cells % 2 == 0, inside, 0)
