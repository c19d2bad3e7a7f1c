"""Class totals that floating point finds hard, drawn by a seed: the kinds that have broken bounds."""

from __future__ import annotations

import numpy as np

TINY = (5e-324, 1e-310, 1e-300, 1e-200, 1e-100, 1e-30, 1e-12)


def _ordinary(rng, m):
    return rng.integers(0, 12, (2, m))


def _equal(rng, m):
    distinct = rng.integers(0, 6, (2, max(1, m // 2)))
    return distinct[:, rng.integers(distinct.shape[1], size=m)]


def _reals(rng, m):
    return rng.gamma(0.5, 2, (2, m)) * (rng.random((2, m)) < 0.8)


def _weighed(rng, m):
    """Sums of a few tf-idf values: hardly two alike."""
    idf = 1 + np.log(100 / rng.integers(1, 100, m))
    return rng.poisson(2, (2, m)) * idf / np.sqrt(rng.integers(1, 400, (2, 1)))


def _trillions(rng, m):
    return 10**12 + rng.integers(0, 10**7, (2, m))


def _vast(rng, m):
    return rng.random((2, m)) * 10.0 ** rng.uniform(285, 300)


def _scattered(rng, m):
    return np.exp(rng.normal(0, 60, (2, m)))


def _near(rng, m):
    """Columns whose shares agree to many digits."""
    share, digits = rng.uniform(0.1, 0.9), rng.uniform(6, 15)
    p = share * (1 + 10**-digits * rng.standard_normal(m))
    g = rng.uniform(1, 100, m)
    return np.array([g * p, g * (1 - p)])


def _near_whole(rng, m):
    base = rng.integers(10**5, 10**9)
    return base + rng.integers(0, 3, (2, m))


def _dominant(rng, m):
    totals = rng.integers(0, 4, (2, m))
    totals[:, rng.integers(m)] += 10 ** rng.integers(6, 15, 2)
    return totals


def _one_sided(rng, m):
    totals = rng.integers(1, 6, (2, m))
    totals[rng.integers(2, size=m), np.arange(m)] = 0
    return totals


def _rare_class(rng, m):
    totals = rng.integers(0, 9, (2, m))
    totals[1] = 0
    totals[1, rng.integers(m)] = rng.integers(0, 2)
    return totals


def _mirrored(rng, m):
    half = rng.integers(0, 7, (2, -(-m // 2)))
    return np.concatenate((half, half[::-1]), axis=1)[:, rng.permutation(2 * half.shape[1])[:m]]


ORDINARY = (_ordinary, _equal, _reals, _weighed, _one_sided, _mirrored)
EXTREME = (_trillions, _vast, _scattered, _near, _near_whole, _dominant, _rare_class)


def table(seed, kinds):
    """Totals (2, m), a smoothing, and a k."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 8))
    totals = kinds[rng.integers(len(kinds))](rng, m)
    if rng.random() < 0.3:
        totals = totals * (rng.random(m) < 0.7)  # absent features
    if rng.random() < 0.2:
        totals = totals[:, rng.integers(m, size=m)]  # equal columns
    usual = (0.0, 0.0, 1.0, 0.5, 0.1, float(rng.uniform(0, 2)))
    alpha = usual[rng.integers(6)]
    if kinds is EXTREME and rng.random() < 0.4:
        alpha = (*TINY, 1e12, 1e300)[rng.integers(len(TINY) + 2)]
    return totals, float(alpha), int(rng.integers(1, m + 1))


def documents(seed):
    """Documents with each feature (C, m), all documents (C,), a smoothing, and a k."""
    rng = np.random.default_rng(seed)
    m, C = int(rng.integers(1, 8)), int(rng.integers(2, 4))
    n = rng.integers(1, (4, 9, 40)[rng.integers(3)], C)
    if rng.random() < 0.3:
        n[:] = n[0]
    if rng.random() < 0.2:
        n = n * 10**12
    totals = np.array([rng.integers(0, size + 1, m) for size in n])
    kind = rng.integers(6)
    if kind == 0:  # mirror images, present for absent
        totals = np.where(rng.random(m) < 0.5, totals[:, :1], n[:, None] - totals[:, :1])
    elif kind == 1:  # the same rate in all classes, where that is whole
        size = np.gcd.reduce(n)
        totals = (n // size)[:, None] * rng.integers(0, size + 1, m)
    elif kind == 2:  # nearly all or nearly none
        totals = np.where(rng.random((C, m)) < 0.5, n[:, None] - rng.integers(0, 2, (C, m)), rng.integers(0, 2, (C, m)))
    elif kind == 3:  # classes swapped
        totals = np.where(rng.random(m) < 0.5, totals[:, :1], np.minimum(totals[::-1, :1], n[:, None]))
    elif kind == 4:  # weights that are not whole
        weight = rng.uniform(0.1, 3)
        totals, n = totals * weight, n * weight
    alpha = (0.0, 1.0, 0.5, 0.1, 1e-10, 1e-12, 5e-324, float(rng.uniform(0, 2)))[rng.integers(8)]
    return totals, n.astype(float), float(alpha), int(rng.integers(1, m + 1))
