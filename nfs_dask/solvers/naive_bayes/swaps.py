"""Better supports by exchanging one feature for another, as long as that gains; for small k.

References: docs/mathematics.md 3.5.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from nfs_dask.arrays.compiling import WorthCompiling
from nfs_dask.solvers.naive_bayes.climbing import MARGIN, Climb, climb, n_incoming
from nfs_dask.solvers.naive_bayes.gains import divergence, gains, own_point, set_gain
from nfs_dask.solvers.naive_bayes.problem import Problem
from nfs_dask.solvers.naive_bayes.set_kernels import LONGEST
from nfs_dask.solvers.naive_bayes.topk import TopFeatures, top
from nfs_dask.solvers.solution import Array

ROUNDS = 100
_in_a_loop = WorthCompiling(climb, 200)


def ascend(problem: Problem, choices: Iterable[TopFeatures], point: Array) -> list[TopFeatures]:
    """The best supports found by single exchanges of features that are not forced; ``point`` is the dual point.

    Sets often lead to one another: from one that was met before there is nothing new. A loop does it in a tenth of the
    time, once it is compiled, which a first fit does not wait for; it does the same to the bit.
    """
    starts = list({id(choice): choice for choice in choices}.values())  # the ends of a bracket are often one set
    if starts[0].counts.sum() <= LONGEST and _in_a_loop():
        climber = Climb(problem, point, len(starts) * ROUNDS)
        return [climber.from_set(start, ROUNDS) for start in starts]
    met: set[bytes] = set()
    return [_followed(problem, start, point, met) for start in starts]


def _followed(problem: Problem, choice: TopFeatures, point: Array, met: set[bytes]) -> TopFeatures:
    """Where exchanges lead from a set, or until one of the sets ``met`` before, to which these are added."""
    for _ in range(ROUNDS):
        members = choice.spread(len(problem.sizes)).tobytes()
        better = None if members in met else exchange(problem, choice, point)
        met.add(members)
        if better is None:
            break
        choice = better
    return choice


def exchange(problem: Problem, choice: TopFeatures, point: Array) -> TopFeatures | None:
    """The best single exchange, if one gains."""
    totals, sizes = problem.totals, problem.sizes
    inside = totals[:, choice.cells]
    own = own_point(inside, choice.counts)
    point = own if own.all() else point  # gains at the set's own point say most, but may be infinite at the border
    gain = gains(totals, point)
    counts = choice.spread(len(sizes))
    room = counts < sizes
    outgoing = choice.cells[choice.cells < len(sizes) - problem.n_forced]
    if own.all():  # no set gains more than its sum there, so that only what gains more can replace what gains less
        room &= gain > gain[outgoing].min(initial=np.inf)
        outgoing = outgoing[gain[outgoing] < gain.max(initial=0.0, where=room)]
    incoming = _highest(np.flatnonzero(room), gain, n_incoming(int(counts.sum())))
    if not len(incoming) or not len(outgoing):
        return None
    height = choice.sum(gain) + gain[incoming] - gain[outgoing][:, None]
    masses = choice.sum(totals)[:, None, None] + totals[:, incoming][:, None, :] - totals[:, outgoing][:, :, None]
    after = height - divergence(np.maximum(masses, 0).reshape(len(totals), -1), point).reshape(height.shape)
    best = int(np.argmax(after))
    counts[outgoing[best // len(incoming)]] -= 1
    counts[incoming[best % len(incoming)]] += 1
    cells = np.flatnonzero(counts)
    better = TopFeatures(cells, counts[cells])
    value = set_gain(inside, choice.counts)
    return better if set_gain(totals[:, cells], better.counts) > value * (1 + MARGIN) else None


def _highest(cells: Array, gain: Array, n: int) -> Array:
    """Those of the n largest gains."""
    return cells[top(gain[cells], np.ones(len(cells), np.int64), n).cells] if len(cells) > n else cells
