"""Many classes: exchanges of one feature for another, among those that some better sets hold and others do not.

A set that gains more than one in hand loses less than the gap at the dual point. So features whose gains there are
farther than the gap from the last one are in all better sets or in none: few are left, and equal ones are as one.

References: docs/mathematics.md 3.8.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nfs_dask.solvers.naive_bayes.equal_columns import bits, group
from nfs_dask.solvers.naive_bayes.gains import divergence
from nfs_dask.solvers.naive_bayes.problem import Problem
from nfs_dask.solvers.naive_bayes.topk import TopFeatures
from nfs_dask.solvers.solution import Array

AROUND = 64  # groups of equal columns on either side of the last place that take part, at most
MARGIN = 1e-13  # relative: less than this is rounding
_ROUNDS = 100


@dataclass(frozen=True)
class ExchangeView:
    """A problem of k features, seen from its dual point."""

    problem: Problem
    k: int
    point: Array
    gain: Array  # (M, ) of each column, at the point

    def values(self, heights: Array | float, masses: Array) -> Array:
        """Gains of sets, from the sums of their gains at the point, (n, ), and their masses, (C, n)."""
        return np.asarray(heights - divergence(np.maximum(masses, 0.0), self.point))


@dataclass(frozen=True)
class Held:
    """A set, and what is known of it."""

    choice: TopFeatures
    masses: Array  # (C, )
    value: float  # its gain, to the digits that are worth choosing by


@dataclass(frozen=True)
class Open:
    """Groups of equal columns, in order of falling gains, some of which a set takes beside the sure ones."""

    view: ExchangeView
    columns: Array  # (n, ) of all groups
    group: Array  # (n, ) which group each is in
    leaders: Array  # (G, ) a column of each group
    sizes: Array  # (G, ) features
    sure: Array  # columns that are taken whole
    need: int  # features of groups in a set

    @classmethod
    def within(cls, view: ExchangeView, reach: float) -> Open:
        """Columns whose gains are within ``reach`` of the last one."""
        problem = view.problem
        n_free = len(view.gain) - problem.n_forced
        gain, sizes = view.gain[:n_free], problem.sizes[:n_free]
        order = np.argsort(-gain, kind="stable")
        last = gain[order[np.searchsorted(np.cumsum(sizes[order]), view.k - problem.n_forced)]]
        near = order[np.abs(gain[order] - last) <= reach]
        group, leaders = _groups(problem.totals[:, near])
        in_groups = np.bincount(group, sizes[near]).astype(np.int64)
        ahead = np.flatnonzero(gain > last + reach)
        need = view.k - problem.n_forced - int(sizes[ahead].sum())
        place = int(np.searchsorted(np.cumsum(in_groups), need))
        first = max(place - AROUND, 0)
        taken, part = group < first, (group >= first) & (group <= place + AROUND)
        return cls(
            view=view,
            columns=near[part],
            group=group[part] - first,
            leaders=near[leaders[first : place + AROUND + 1]],
            sizes=in_groups[first : place + AROUND + 1],
            sure=np.concatenate((ahead, near[taken], np.arange(n_free, len(view.gain)))),
            need=need - int(in_groups[:first].sum()),
        )

    def ascend(self, held: Held) -> Held:
        """A set improved by exchanges; itself, where none gains or it lacks something sure."""
        view = self.view
        counts = held.choice.spread(len(view.gain))
        amounts = np.bincount(self.group, counts[self.columns], len(self.sizes)).astype(np.int64)
        if amounts.sum() != self.need or (counts[self.sure] < view.problem.sizes[self.sure]).any():
            return held
        masses, value = held.masses, held.value
        height = value + float(divergence(masses[:, None], view.point)[0])
        gain, totals = view.gain[self.leaders], view.problem.totals[:, self.leaders]
        for _ in range(_ROUNDS):
            step, gained = self._exchange(amounts, height, masses)
            if gained <= value * (1 + MARGIN):
                break
            amounts, value = amounts + step, gained
            height, masses = height + float(gain @ step), masses + totals @ step
        return held if masses is held.masses else Held(self._expand(amounts), masses, value)

    def _exchange(self, amounts: Array, height: float, masses: Array) -> tuple[Array, float]:
        """The best single exchange, and what the set gains with it."""
        out, into = np.flatnonzero(amounts), np.flatnonzero(amounts < self.sizes)
        step = np.zeros_like(amounts)
        if not len(out) or not len(into):
            return step, 0.0
        gain, totals = self.view.gain[self.leaders], self.view.problem.totals[:, self.leaders]
        heights = height + gain[into] - gain[out][:, None]
        after = masses[:, None, None] + totals[:, None, into] - totals[:, out][:, :, None]
        values = self.view.values(heights.ravel(), after.reshape(len(masses), -1))
        best = int(np.argmax(values))
        step[out[best // len(into)]] -= 1
        step[into[best % len(into)]] += 1
        return step, float(values[best])

    def _expand(self, amounts: Array) -> TopFeatures:
        """A set by how many features it takes of each group: those of the lowest columns."""
        order = np.lexsort((self.columns, self.group))
        columns, group = self.columns[order], self.group[order]
        sizes = self.view.problem.sizes[columns]
        before = np.cumsum(sizes) - sizes
        before -= before[np.searchsorted(group, group)]
        counts = np.zeros(len(self.view.gain), np.int64)
        counts[columns] = np.clip(amounts[group] - before, 0, sizes)
        counts[self.sure] = self.view.problem.sizes[self.sure]
        cells = np.flatnonzero(counts)
        return TopFeatures(cells, counts[cells])


def _groups(totals: Array) -> tuple[Array, Array]:
    """The group of equal columns that each column is in, in order of appearance, and the first column of each."""
    cells, codes = group(bits(totals))
    assert codes is not None
    return codes, cells.firsts
