"""Many classes: the best whole set that a mixture of sets leads to.

A settled mixture has at most C fractions, so that there are few ways to round it to k features. The best of them, and
the best of the sets that were mixed, are then improved by exchanges.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np

from nfs_dask.solvers.exchanges import MARGIN, Open, View
from nfs_dask.solvers.found import best_of
from nfs_dask.solvers.settling import settled_amounts
from nfs_dask.solvers.topk import Choice

_UNSURE = 10  # fractions that may be rounded either way, at most: 252 ways
_STARTS = 8  # sets that are improved

Mixture = tuple[tuple[float, Choice], ...]


def best_whole(view: View, mixture: Mixture, sets: Iterable[Choice], bound: float) -> tuple[Choice, float]:
    """A set and its gain, which is at most ``bound``; at least as good as ``sets``."""
    starts = _best(view, [*sets, *roundings(view, mixture)], _STARTS)
    choice, value = best_of(view.problem, starts)
    if bound - value <= MARGIN * bound:
        return choice, value
    around = Open.within(view, bound - value)
    return best_of(view.problem, [choice, *map(around.ascend, starts)])


def roundings(view: View, mixture: Mixture) -> list[Choice]:
    """The best ways to round the fractions of a mixture such that k features result."""
    totals = view.problem.totals
    amounts = settled_amounts(view.problem, mixture, view.point)
    low = np.floor(amounts)
    loose = np.flatnonzero(amounts - low)
    loose = loose[np.argsort(low[loose] - amounts[loose], kind="stable")]  # largest fractions first
    n_up = view.k - int(low.sum())
    if not 0 <= n_up <= len(loose):  # more was rounded off than the mixture can spare
        return []
    n_sure = min(max(n_up - _UNSURE // 2, 0), max(len(loose) - _UNSURE, 0))
    low[loose[:n_sure]] += 1
    unsure = loose[n_sure : n_sure + _UNSURE]
    ways = np.array(list(itertools.combinations(range(len(unsure)), n_up - n_sure)), np.intp)
    raised = np.zeros((len(unsure), len(ways)))
    raised[ways.T, np.arange(len(ways))] = 1
    values = view.values(
        low @ view.gain + view.gain[unsure] @ raised, (totals @ low)[:, None] + totals[:, unsure] @ raised
    )
    found = []
    for i in np.argsort(-values, kind="stable")[:_STARTS]:
        counts = low.astype(np.int64)
        counts[unsure] += raised[:, i].astype(np.int64)
        cells = np.flatnonzero(counts)
        found.append(Choice(cells, counts[cells]))
    return found


def _best(view: View, sets: list[Choice], n: int) -> list[Choice]:
    """The n best of some sets, each once; of equal ones the first."""
    values = view.values_of(sets)
    distinct: dict[bytes, Choice] = {}
    for i in np.argsort(-values, kind="stable"):
        distinct.setdefault(sets[i].spread(len(view.gain)).tobytes(), sets[i])
        if len(distinct) == n:
            break
    return list(distinct.values())
