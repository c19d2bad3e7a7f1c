"""Evaluating all gains at a point: plainly, or, where there are many columns, only those that can matter.

References: docs/mathematics.md 3.4.
"""

from __future__ import annotations

import copy
from typing import Any, Protocol

import numpy as np

from nfs_dask.arrays.compiling import WorthCompiling, kernel
from nfs_dask.solvers.naive_bayes.column_sample import ColumnSample, Guess
from nfs_dask.solvers.naive_bayes.cuts import Cut, Minimum, log_odds, minimise
from nfs_dask.solvers.naive_bayes.gains import divergence, gains, gains_two
from nfs_dask.solvers.naive_bayes.problem import Problem
from nfs_dask.solvers.naive_bayes.screening import in_none, screen
from nfs_dask.solvers.naive_bayes.set_kernels import kth, take_best
from nfs_dask.solvers.naive_bayes.topk import TIED, TopFeatures, top
from nfs_dask.solvers.solution import Array

FEW = 5_000  # columns up to which calls of numpy are what takes longest
WIDE = 30_000  # columns from which on a sample pays
_LARGE = 1_000_000  # columns from which on a finer sieve pays
_STRIDES = (15, 127)  # two columns of so many are a sample
_PARTS = (16, 128)  # parts of each octave of shares in a table of bounds
_CLOSER = 2  # times closer the ends have to be before it is worth looking again
_AROUND = 1e-9  # in t: more than the distance of a best point from a set's own one
_FEW = 5_000  # columns that are not worth looking at again


class Evaluator(Protocol):
    """Cuts of a problem, and where to begin."""

    start: Array

    def __call__(self, point: Array, low: Cut | None, high: Cut | None) -> Cut: ...

    def gains(self, best: Cut) -> Array:
        """Of all columns, at the point of a cut."""
        ...

    def columns(self, minimum: Minimum) -> Array | None:
        """Columns that matter at the minimum and a little around it, ties among them; None for all."""
        ...


class Plain:
    """Cuts of a problem from all of its columns.

    Once there is a point on either side of the minimum, those that are in no best set in between are left out. The
    others are added up in the same order, so that cuts do not differ in any bit.
    """

    def __init__(self, problem: Problem, k: int, start: Array) -> None:
        self.problem, self.k, self.start = problem, k, start
        self._seen: dict[int, tuple[Cut, Array]] = {}
        self._between: tuple[Cut, Cut] | None = None
        self._columns, self._totals, self._sizes = np.zeros(0, np.int64), problem.totals, problem.sizes

    def __call__(self, point: Array, low: Cut | None, high: Cut | None) -> Cut:
        if not self._between and id(low) in self._seen and id(high) in self._seen:
            self._leave_out(low, high)
        if self._between and self._between[0].t <= log_odds(point) <= self._between[1].t:
            gain = gains(self._totals, point)
            choice = top(gain, self._sizes, self.k)
            height, masses = float(choice.sum(gain)), choice.sum(self._totals)
            return Cut.of(point, height, masses, choice.map(lambda c: self._columns[c]))
        gain = self.problem.gains(point)
        choice = self.problem.top(gain, self.k)
        cut = Cut.of(point, float(choice.sum(gain)), choice.sum(self.problem.totals), choice)
        if len(gain) < WIDE and not self.problem.n_forced:  # of more columns, gains would be much to remember
            self._seen = {id(one): self._seen[id(one)] for one in (low, high) if id(one) in self._seen}
            self._seen[id(cut)] = cut, gain
        return cut

    def _leave_out(self, *ends: Any) -> None:
        """Keep the columns that may be in a best set between two cuts, whose gains are remembered."""
        problem, ((low, at_low), (high, at_high)) = self.problem, (self._seen[id(end)] for end in ends)
        never = in_none(problem.totals, problem.sizes, low.point, high.point, at_low, at_high, self.k)
        self._columns, self._between = np.flatnonzero(~never), (low, high)
        self._totals = problem.totals.take(self._columns, axis=1)
        self._sizes = problem.sizes[self._columns]
        self._seen = {}

    def gains(self, best: Cut) -> Array:
        """Of all columns; known, if it is a cut that was looked at last."""
        seen = self._seen.get(id(best))
        return seen[1] if seen else self.problem.gains(best.point)

    def columns(self, minimum: Minimum) -> Array | None:
        return None


class Few(Plain):
    """The same cuts where columns are so few that calls of numpy would take longer than what they do."""

    def __init__(self, problem: Problem, k: int, start: Array) -> None:
        super().__init__(problem, k, start)
        n = len(problem.sizes)
        self._gain, self._ranks, self._sizes = np.empty(n), np.empty(n), np.empty(n, np.int64)
        self._weighed = np.empty((3, min(k, n)))

    def __call__(self, point: Array, low: Cut | None, high: Cut | None) -> Cut:
        problem, gain, weighed = self.problem, self._gain, self._weighed
        gains_two(problem.totals, point, gain)
        cells, counts = np.empty((2, weighed.shape[1] + 1), np.int64)
        n = _cut(
            *(problem.totals, problem.sizes, problem.n_forced, self.k),
            *(gain, self._ranks, self._sizes, cells, counts, weighed),
        )
        curve = np.empty(4)
        curve[0] = log_odds(point)
        np.add.reduce(weighed[:, :n], axis=1, out=curve[1:])
        cut = Cut(point, curve, TopFeatures(cells[:n], counts[:n]))
        self._seen = {id(cut): (cut, gain)}
        return cut


@kernel
def _cut(totals, sizes, n_forced, k, gain, ranks, weights, cells, counts, weighed):
    """Write the best set under some gains, and what each of its cells adds to it; returns how many cells it has."""
    n_free = len(gain) - n_forced
    for i in range(len(gain)):
        ranks[i] = gain[i] if i < n_free else np.inf
        weights[i] = sizes[i]
    last = kth(ranks, weights, len(gain), k)
    n = take_best(gain, sizes, n_free, k, last, cells, counts)
    for j in range(n):
        weighed[0, j] = gain[cells[j]] * counts[j]
        weighed[1, j] = totals[0, cells[j]] * counts[j]
        weighed[2, j] = totals[1, cells[j]] * counts[j]
    return n


_in_a_loop = WorthCompiling(_cut, 200)


class Sieved:
    """The same cuts, from the columns that can be among the k best near where a sample has its minimum.

    One look at all columns, without logarithms, leaves out those that cannot matter there; those that are in every best
    set there enter only through their sums. Points elsewhere are looked at plainly.
    """

    def __init__(self, problem: Problem, k: int, guess: Guess, between: Between) -> None:
        self.plain, self.start = Plain(problem, k, guess.point), guess.point
        self.guess, self.sifted, self.between = guess, between, between

    def __call__(self, point: Array, low: Cut | None, high: Cut | None) -> Cut:
        if low is not None and high is not None and self.between.holds(low.t) and self.between.holds(high.t):
            self.between = self.between.narrowed(low, high)
        inside = self.between.holds(log_odds(point))
        return self.between.cut(point) if inside else self.plain(point, low, high)

    def gains(self, best: Cut) -> Array:
        return self.plain.problem.gains(best.point)

    def columns(self, minimum: Minimum) -> Array | None:
        best = minimum.best
        if not (self.sifted.holds(best.t - _AROUND) and self.sifted.holds(best.t + _AROUND)):
            return None
        last = gains(self.plain.problem.totals[:, best.choice.cells], best.point).min()
        if not self.guess.floor < last * (1 - 2 * TIED) <= last * (1 + 2 * TIED) < self.guess.ceiling:
            return None
        matter = np.zeros(len(self.plain.problem.sizes), bool)
        for columns in (self.sifted.columns, *(cut.choice.cells for cut in (best, minimum.low, minimum.high))):
            matter[columns] = True
        return np.flatnonzero(matter)


class Between:
    """What matters between two points: columns that may be chosen, and the sure ones by the sum of their gains."""

    def __init__(self, problem: Problem, k: int, columns: Array, sure: Array, low: Array, high: Array) -> None:
        self.columns, self.totals, self.sizes = columns, problem.totals[:, columns], problem.sizes[columns]
        self.sure = TopFeatures(sure, problem.sizes[sure])
        self.k = k - int(self.sure.counts.sum())
        totals = problem.totals[:, sure]
        self.sure_gain = float((gains(totals, low) * self.sure.counts).sum())
        self.sure_masses, self.sure_point = (totals * self.sure.counts).sum(axis=1), low
        self.low, self.high = log_odds(low), log_odds(high)

    def holds(self, t: float) -> bool:
        """Whether a point is between."""
        return self.low <= t <= self.high

    def cut(self, point: Array) -> Cut:
        """The best set at a point between."""
        gain = gains(self.totals, point)
        choice = top(gain, self.sizes, self.k)
        fixed = self.sure_gain - _loss(self.sure_masses, self.sure_point) + _loss(self.sure_masses, point)
        cells = np.concatenate((self.sure.cells, self.columns[choice.cells]))
        counts = np.concatenate((self.sure.counts, choice.counts))
        return Cut.of(
            point,
            fixed + float(choice.sum(gain)),
            self.sure_masses + choice.sum(self.totals),
            TopFeatures(cells, counts),
        )

    def narrowed(self, low: Cut, high: Cut) -> Between:
        """The same for points closer together; itself, where they are not much closer, or columns are few."""
        if len(self.columns) < _FEW or high.t - low.t > (self.high - self.low) / _CLOSER:
            return self
        always, never = screen(self.totals, self.sizes, low.point, high.point, self.k)
        out = copy.copy(self)
        out.low, out.high = low.t, high.t
        kept = ~(always | never)
        out.columns, out.totals, out.sizes = self.columns[kept], self.totals[:, kept], self.sizes[kept]
        new = TopFeatures(np.flatnonzero(always), self.sizes[always])
        out.k = self.k - int(new.counts.sum())
        out.sure = TopFeatures(
            np.concatenate((self.sure.cells, self.columns[always])), np.concatenate((self.sure.counts, new.counts))
        )
        moved = self.sure_gain - _loss(self.sure_masses, self.sure_point) + _loss(self.sure_masses, low.point)
        out.sure_gain = moved + float(new.sum(gains(self.totals, low.point)))
        out.sure_masses, out.sure_point = self.sure_masses + new.sum(self.totals), low.point
        return out


def _loss(masses: Array, point: Array) -> float:
    """B KL(B_c/B || point): how much more a set's gains sum to at a point than at its own."""
    return float(divergence(masses[:, None], point)[0])


def evaluator(problem: Problem, k: int, start: Array, spare: int = 0) -> Evaluator:
    """The faster way to cuts of this problem.

    ``start`` is a guess of the dual point; columns that matter are ``spare`` more than are known to be needed.
    """
    if len(problem.sizes) < FEW and _in_a_loop():
        return Few(problem, k, start)
    plain = Plain(problem, k, start)
    return plain if len(problem.sizes) < WIDE or problem.n_forced else _sieve(problem, k, start, spare) or plain


def _sieve(problem: Problem, k: int, start: Array, spare: int) -> Sieved | None:
    """What a sample tells to leave out, if that could be proved on all columns."""
    sample = ColumnSample.of(problem, _STRIDES[len(problem.sizes) >= _LARGE])
    if k >= sample.problem.size:
        return None
    evaluate = evaluator(sample.problem, k, start)
    guess = sample.guess(k, minimise(evaluate, evaluate.start), _PARTS[len(problem.sizes) >= _LARGE], spare)
    if not guess.floor > 0:
        return None
    sifted = guess.table.sift(problem.totals, problem.sizes, k, guess.floor, guess.ceiling)
    if sifted is None:
        return None
    return Sieved(problem, k, guess, Between(problem, k, *sifted, guess.low, guess.high))
