"""Independent truth to eighty digits: every support of a small problem, whose counts are taken to the last bit."""

from __future__ import annotations

import itertools
from functools import cached_property

import numpy as np
from mpmath import mp, mpf

mp.dps = 80


def xlog(x):
    return x * mp.log(x) if x > 0 else mpf(0)


def numbers(values):
    """Doubles or whole numbers as they are."""
    return [mpf(v) for v in np.asarray(values).tolist()]


class _Enumerated:
    """Objectives of the supports of k features; ``always`` ones are in each of them."""

    def __init__(self, totals, k, always=()):
        m = np.shape(totals)[1]
        absent = [not column.any() for column in np.asarray(totals).T]
        free = [i for i in range(m) if i not in always and not (k < m and absent[i])]
        rest = min(k - len(always), len(free))
        self.supports = [tuple(sorted((*always, *more))) for more in itertools.combinations(free, rest)]

    @cached_property
    def objectives(self):
        return {support: self.objective(support) for support in self.supports}

    @cached_property
    def best(self):
        return max(self.objectives.values())

    def loss(self, support):
        return self.best - self.objectives[tuple(int(i) for i in support)]


class Multinomial(_Enumerated):
    def __init__(self, totals, alpha, k, always=()):
        super().__init__(totals, k, always)
        self.f = [[v + mpf(alpha) for v in numbers(row)] for row in totals]
        self.g = [sum(column) for column in zip(*self.f, strict=True)]
        self.mass = sum(self.g)
        self._split = [sum(xlog(v) for v in column) for column in zip(*self.f, strict=True)]
        self._pooled = [xlog(g) for g in self.g]
        self.null = sum(self._pooled) - xlog(self.mass)

    def objective(self, support):
        masses = [sum(row[i] for i in support) for row in self.f]
        change = sum(self._split[i] - self._pooled[i] for i in support)
        return self.null + change + xlog(sum(masses)) - sum(xlog(b) for b in masses)


class Bernoulli(_Enumerated):
    def __init__(self, totals, documents, alpha, k, always=()):
        super().__init__(totals, k, always)
        n, a = numbers(documents), mpf(alpha)
        f = [[v + a for v in numbers(row)] for row in totals]
        e = [[size - v + a for v in numbers(row)] for row, size in zip(totals, n, strict=True)]
        F, E = ([sum(column) for column in zip(*rows, strict=True)] for rows in (f, e))
        N = sum(n) + 2 * a * len(n)
        self.pooled = [xlog(present) + xlog(absent) - xlog(N) for present, absent in zip(F, E, strict=True)]
        split = [
            sum(xlog(row[i]) + xlog(other[i]) - xlog(row[i] + other[i]) for row, other in zip(f, e, strict=True))
            for i in range(len(F))
        ]
        self.gains = [w - v for w, v in zip(split, self.pooled, strict=True)]
        self.null = sum(self.pooled)
        self.mass = N

    def objective(self, support):
        return self.null + sum(self.gains[i] for i in support)
