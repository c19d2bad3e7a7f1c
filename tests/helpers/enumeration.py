"""Independent truth: every support of a small problem, and gains by the textbook formula."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import xlogy


def support_gain(F, support):
    """G(D) by its definition, in logarithms of sums."""
    D = np.asarray(F, float)[:, list(support)]
    g, B = D.sum(axis=0), D.sum(axis=1)
    return float(xlogy(D, D).sum() - xlogy(g, g).sum() + xlogy(B.sum(), B.sum()) - xlogy(B, B).sum())


def best_gain(F, k, always=()):
    """phi(k) less its value at 0, over all supports of exactly min(k, m) features that hold ``always``."""
    m = np.shape(F)[1]
    free = [i for i in range(m) if i not in always]
    rest = min(k, m) - len(always)
    return max(support_gain(F, (*always, *more)) for more in itertools.combinations(free, rest))


def dual_height(F, k, point):
    """Sum of the k largest g KL(p || point)."""
    F = np.asarray(F, float)
    g = F.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        h = np.nan_to_num(xlogy(F, F / g / np.asarray(point)[:, None]), nan=0.0, posinf=np.inf).sum(axis=0)
    return float(np.sort(h)[::-1][:k].sum())


def lowest_height(F, k):
    """psi(k) less the value at 0, by a search that knows nothing of cuts: good to 1e-6, never too low."""
    F = np.asarray(F, float)
    F = F[F.any(axis=1)]
    if len(F) < 2 or k == 0:
        return 0.0
    start = np.log(F.sum(axis=1))

    def height(t):
        a = np.exp(np.concatenate((t, [0.0])) - max(t.max(), 0.0))
        return dual_height(F, k, a / a.sum())

    best = np.inf
    t = start[:-1] - start[-1]
    for _ in range(6):  # restarts keep the simplex method from dying at a corner
        found = minimize(height, t, method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-13, "maxiter": 2000})
        best, t = min(best, found.fun), found.x
    return best


@st.composite
def tables(draw, classes=(2, 3), most=8):
    """Class totals of every awkward kind: zeros, one-sided, equal, proportional, rare, huge, real."""
    C = draw(st.sampled_from(classes))
    m = draw(st.integers(1, most))
    kind = draw(st.sampled_from(["small", "binary", "wide", "real", "huge"]))
    values = {
        "small": st.integers(0, 6),
        "binary": st.integers(0, 1),
        "wide": st.sampled_from([0, 1, 2, 10, 1000, 10**6]),
        "real": st.floats(0.01, 20).map(lambda v: round(v, 3)) | st.just(0.0),
        "huge": st.integers(10**12, 10**12 + 10**7),
    }[kind]
    distinct = draw(st.lists(st.tuples(*[values] * C), min_size=1, max_size=m))
    columns = [distinct[draw(st.integers(0, len(distinct) - 1))] for _ in range(m)] if draw(st.booleans()) else distinct
    return np.array(columns, dtype=float if kind == "real" else np.int64).T.copy()


def best_gain_of_groups(distinct, sizes, k):
    """phi(k) of a table that has ``sizes`` copies of each of a few columns: over all amounts of each."""
    T = np.asarray(distinct, float)
    grids = np.meshgrid(*[np.arange(size + 1) for size in sizes[:-1]], indexing="ij")
    amounts = np.stack([grid.ravel() for grid in grids])
    rest = k - amounts.sum(axis=0)
    fits = (rest >= 0) & (rest <= sizes[-1])
    amounts = np.vstack((amounts[:, fits], rest[fits]))
    B = T @ amounts
    own = xlogy(T, T).sum(axis=0) - xlogy(T.sum(axis=0), T.sum(axis=0))
    return float((own @ amounts + xlogy(B.sum(axis=0), B.sum(axis=0)) - xlogy(B, B).sum(axis=0)).max())
