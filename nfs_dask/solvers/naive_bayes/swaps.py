"""Better supports by exchanging one feature for another, as long as that gains; for small k.

References: docs/mathematics.md 3.5.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from nfs_dask.solvers.naive_bayes.gains import divergence, gains, own_point, set_gain
from nfs_dask.solvers.naive_bayes.problem import Problem
from nfs_dask.solvers.naive_bayes.topk import TopFeatures, top
from nfs_dask.solvers.solution import Array

_MARGIN = 1e-13  # relative: less than this is rounding
ROUNDS = 100
_POOL = 64  # candidates to come in, beyond three for each feature that is in


def ascend(problem: Problem, choices: Iterable[TopFeatures], point: Array) -> list[TopFeatures]:
    """The best supports found by single exchanges of features that are not forced; ``point`` is the dual point.

    Sets often lead to one another: from one that was met before there is nothing new.
    """
    met: set[frozenset[tuple[int, int]]] = set()
    found = []
    for start in choices:
        choice = start
        for _ in range(ROUNDS):
            members = frozenset(zip(choice.cells.tolist(), choice.counts.tolist(), strict=True))
            better = None if members in met else exchange(problem, choice, point)
            met.add(members)
            if better is None:
                break
            choice = better
        found.append(choice)
    return found


def n_incoming(k: int) -> int:
    """How many features are tried to come in."""
    return 3 * k + _POOL


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
    return better if set_gain(totals[:, cells], better.counts) > value * (1 + _MARGIN) else None


def _highest(cells: Array, gain: Array, n: int) -> Array:
    """Those of the n largest gains."""
    return cells[top(gain[cells], np.ones(len(cells), np.int64), n).cells] if len(cells) > n else cells
