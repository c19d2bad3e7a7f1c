"""Many classes: the best whole set that a mixture of sets leads to.

A settled mixture has at most C fractions, so that there are few ways to round it to k features. The best of them, and
the best of the sets that were mixed, are then improved by exchanges.

References: NFS Propositions 3.8 to 3.10 for C classes: docs/mathematics.md 3.8.
"""

from __future__ import annotations

import itertools

import numpy as np

from nfs_dask.solvers.naive_bayes.exchanges import MARGIN, ExchangeView, Held, Open
from nfs_dask.solvers.naive_bayes.found import best_of
from nfs_dask.solvers.naive_bayes.settling import settled_amounts
from nfs_dask.solvers.naive_bayes.topk import TopFeatures

_UNSURE = 10  # fractions that may be rounded either way, at most: 252 ways
PROMISING = 8  # sets that are improved
_EXACT = 2  # of the best sets, how many are compared to the last digit

Mixture = tuple[tuple[float, TopFeatures], ...]


def best_whole(view: ExchangeView, mixture: Mixture, sets: list[Held], bound: float) -> tuple[TopFeatures, float]:
    """A set and its gain, which is at most ``bound``; at least as good as ``sets``."""
    starts = _best([*sets, *roundings(view, mixture)], PROMISING)
    choice, value = best_of(view.problem, [start.choice for start in starts[:_EXACT]])
    if bound - value <= MARGIN * bound:
        return choice, value
    around = Open.within(view, bound - value)
    better = _best([around.ascend(start) for start in starts], _EXACT)
    return best_of(view.problem, [choice, *(held.choice for held in better)])


def roundings(view: ExchangeView, mixture: Mixture) -> list[Held]:
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
    masses = (totals @ low)[:, None] + totals[:, unsure] @ raised
    values = view.values(low @ view.gain + view.gain[unsure] @ raised, masses)
    found = []
    for i in np.argsort(-values, kind="stable")[:PROMISING]:
        counts = low.astype(np.int64)
        counts[unsure] += raised[:, i].astype(np.int64)
        cells = np.flatnonzero(counts)
        found.append(Held(TopFeatures(cells, counts[cells]), masses[:, i], float(values[i])))
    return found


def _best(sets: list[Held], n: int) -> list[Held]:
    """The n best of some sets, each once; of equal ones the first."""
    distinct: dict[bytes, Held] = {}
    for held in sorted(sets, key=lambda held: -held.value):
        order = np.argsort(held.choice.cells)
        cells, counts = held.choice.cells[order], held.choice.counts[order]
        distinct.setdefault(cells.tobytes() + counts.tobytes(), held)
        if len(distinct) == n:
            break
    return list(distinct.values())
