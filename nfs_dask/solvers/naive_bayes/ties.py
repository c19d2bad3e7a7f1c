"""Which of several Bernoulli gains are equal, where rounding does not tell: to as many digits as it takes.

Different columns may gain the same. Mirror images have equal bits, but others are equal by the logarithms they happen
to have: 2 of 4 documents in one class and 4 of 8 in the other gain as much as none. Only columns near the last place
ever get here, and few of those are distinct.

References: docs/mathematics.md 2; which features tie is left open in NFS Theorem 3.1.
"""

from __future__ import annotations

from decimal import Context, Decimal, localcontext

import numpy as np

from nfs_dask.solvers.solution import Array

MOST = 10_000  # distinct columns
_DIGITS = 120
_NONE = Decimal(0)
_EQUAL = Decimal(10) ** -90  # of all documents: gains closer than this are the same number


def ranks(totals: Array, documents: Array, alpha: float) -> Array:
    """The place of each distinct column (C, n) by its gain, (n, ): 0 for the largest; equal ones share a place.

    ``alpha`` is added to totals (without smoothing), and twice to the documents of each class.

    >>> ranks(np.array([[1, 1, 3, 2], [2, 3, 1, 2]]), np.array([4.0, 4.0]), 0.0).tolist()
    [1, 0, 0, 2]
    """
    with localcontext(Context(prec=_DIGITS)):
        logs: dict[Decimal, Decimal] = {}
        a, n = Decimal(alpha), [Decimal(size) for size in documents.tolist()]
        gains = [_gain([Decimal(f) for f in column], n, a, logs) for column in totals.T.tolist()]
        near = _EQUAL * sum(n)
        order = sorted(range(len(gains)), key=lambda i: -gains[i])
        places = np.zeros(len(gains), np.int64)
        for before, after in zip(order, order[1:], strict=False):
            places[after] = places[before] + (gains[before] - gains[after] > near)
    return places


def split_ties(totals: Array, sizes: Array, need: int, documents: Array, alpha: float) -> tuple[Array, Array, bool]:
    """Of columns (C, n) that may gain the same, those sure to be among the ``need`` best, and those that share the end.

    Each stands for as many features as its size. Positions, ascending, and whether those are settled: more than
    `MOST` distinct columns are not, and count as equal.
    """
    everyone = np.arange(len(sizes))
    if need in (0, int(sizes.sum())):
        return everyone[:0], everyone, True
    distinct, which = np.unique(totals, axis=1, return_inverse=True)
    if not 1 < distinct.shape[1] <= MOST:
        return everyone[:0], everyone, distinct.shape[1] == 1
    place = ranks(distinct, documents, alpha)[which.ravel()]
    through = np.cumsum(np.bincount(place, weights=sizes))
    last = int(np.searchsorted(through, need))
    return everyone[place < last], everyone[place == last], True


def _gain(column: list[Decimal], documents: list[Decimal], alpha: Decimal, logs: dict[Decimal, Decimal]) -> Decimal:
    """A gain, but for what all columns have in common."""
    present = [f + alpha for f in column]
    absent = [max(n - f, _NONE) + alpha for f, n in zip(column, documents, strict=True)]
    own = sum((_xlog(x, logs) for x in (*present, *absent)), _NONE)
    return own - _xlog(sum(present, _NONE), logs) - _xlog(sum(absent, _NONE), logs)


def _xlog(x: Decimal, logs: dict[Decimal, Decimal]) -> Decimal:
    if not x:
        return x
    if x not in logs:
        logs[x] = x * x.ln()
    return logs[x]
