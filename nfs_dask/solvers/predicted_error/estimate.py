"""The error of a multinomial naive Bayes classifier, predicted from the probabilities of its features.

Documents are m tokens drawn one by one. Some features are *kept*; all others count as one more feature, the *rest*, of
which only the total is known. L_ik = sum_d x_d (log p_di - log p_dk) is what speaks for class i against class k, and
the classifier says i where L_ik >= T_ik = log prior_k - log prior_i for every k. Means and variances of L_ik are exact;
that it is normal is the approximation, and for more than two classes that comparisons are independent.

References: ERR (4), (7), (10), (22) to (26), (29) to (33), with (26) corrected and without the denominator of (34).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from nfs_dask.errors import InputError
from nfs_dask.solvers.predicted_error.error_kernels import ALIKE, COMPENSATED, EXACT, UNCORRELATED, add_up
from nfs_dask.solvers.solution import Array

VARIANCES = {"exact": EXACT, "uncorrelated": UNCORRELATED, "compensated": COMPENSATED}
SUM_OF_ONE = 1e-6  # probabilities may add up to this much more or less than 1


@dataclass(frozen=True)
class Lengths:
    """The distribution of the number of tokens of documents."""

    values: Array  # (n,) float64, ascending, each 0 or more
    shares: Array  # (n,) float64, sum 1

    @classmethod
    def of(cls, n_tokens: Any) -> Lengths:
        """From one length, a sequence of the lengths of documents, or a mapping of lengths to their weights.

        >>> Lengths.of({10: 3, 20: 1}).shares.tolist()
        [0.75, 0.25]
        """
        weighted = isinstance(n_tokens, Mapping)
        try:
            values = np.array(list(n_tokens) if weighted else n_tokens, np.float64, ndmin=1).ravel()
            weights = np.array(list(n_tokens.values()), np.float64) if weighted else np.ones(len(values))
        except (TypeError, ValueError):
            values = weights = np.array([np.nan])  # refused below
        if not (len(values) and _sane(values) and _sane(weights) and weights.any()):
            raise InputError(
                f"n_tokens={_short(n_tokens)} is not a document length; give one number of 0 or more, a list of them, "
                "or a dict of lengths and their weights such as {10: 3, 20: 1}"
            )
        values, where = np.unique(values, return_inverse=True)
        shares = np.bincount(where, weights / weights.max(), len(values))
        return cls(values[shares > 0], shares[shares > 0] / shares.sum())

    @property
    def mean(self) -> float:
        return float(self.shares @ self.values)

    @property
    def variance(self) -> float:
        return float(self.shares @ (self.values - self.mean) ** 2)


@dataclass(frozen=True)
class ErrorProblem:
    """Classes, and documents of them. All probabilities are positive and those of a class add up to 1."""

    P: Array  # (C, D) float64
    prior: Array  # (C,) float64, sum 1
    lengths: Lengths

    @classmethod
    def of(cls, P: Any, n_tokens: Any, prior: Any = None, least: int = 2) -> ErrorProblem:
        """Checked: ``P`` (C, D) probabilities, ``prior`` (C,) or None for equal ones, ``n_tokens`` as `Lengths.of`.

        A classifier of a single class is never wrong; who asks about one has to say so by ``least``.
        """
        P = np.array(P, np.float64, order="C", ndmin=2)
        if P.ndim != 2 or len(P) < least or not P.shape[1]:
            raise InputError(
                f"probabilities of shape {P.shape} are not those of classes; give a row for each of two or more classes"
                " and a column for each feature"
            )
        bad = np.argwhere(~(np.isfinite(P) & (P > 0)))
        if len(bad):
            row, column = bad[0]
            raise InputError(
                f"the probability of feature {column} in class {row} is {P[row, column]}; all have to be positive, so "
                "smooth the counts first (alpha above 0), or leave out what no class has"
            )
        sums = P.sum(axis=1)
        off = np.flatnonzero(np.abs(sums - 1) > SUM_OF_ONE)
        if len(off):
            raise InputError(
                f"the probabilities of class {off[0]} add up to {sums[off[0]]:.9g} instead of 1; give those of all "
                "features, or add a column for all that is missing"
            )
        P /= sums[:, None]
        return cls(P, _prior(prior, len(P)), Lengths.of(n_tokens))

    @property
    def n_classes(self) -> int:
        return len(self.P)

    @property
    def n_features(self) -> int:
        return self.P.shape[1]

    @cached_property
    def thresholds(self) -> Array:
        """(C, C) T_ik: what L_ik has to reach; classes without a prior are never said."""
        logs = np.log(self.prior, out=np.full(self.n_classes, -np.inf), where=self.prior > 0)
        ahead, behind = np.broadcast_arrays(logs[None, :], logs[:, None])
        return np.subtract(ahead, behind, out=np.zeros(ahead.shape), where=~np.isneginf(ahead) | ~np.isneginf(behind))

    @cached_property
    def task(self) -> tuple[Array, Array, Array, Array]:
        """As kernels want it."""
        return self.prior, self.thresholds, self.lengths.values, self.lengths.shares

    @cached_property
    def least(self) -> Array:
        """(C,) of the least probable feature: no rest has less, though rounding may say so."""
        return np.asarray(self.P.min(axis=1))

    @cached_property
    def _all(self) -> Array:
        sums = np.zeros((2, self.n_classes))
        add_up(self.P, np.arange(self.n_features), sums)
        return sums

    def whole(self) -> Array:
        """(2, C) what all probabilities add up to, as pairs of doubles that are the caller's."""
        return self._all.copy()


@dataclass(frozen=True)
class ErrorEstimate:
    """The predicted error of a classifier, and what it follows from; lengths of documents are averaged over."""

    error: float  # probability of a wrong decision
    detection: Array  # (C, C) probability of saying i where j is true, [i, j]; columns add up to about 1
    pairwise: Array  # (C, C, C) probability that class i is preferred to k where j is true, [i, k, j]
    mean: Array  # (C, C, C) of L_ik under class j, [i, k, j]
    variance: Array  # (C, C, C) the same
    class_mean: Array  # (C, C) of the log likelihood of class r, up to what all classes share, under class t, [r, t]
    class_variance: Array  # (C, C) the same


def estimate(problem: ErrorProblem, features: Array | None = None, variance: str = "exact") -> ErrorEstimate:
    """The predicted error with some features kept, by default all of them.

    >>> problem = ErrorProblem.of([[0.6, 0.1, 0.3], [0.2, 0.5, 0.3]], n_tokens=6)
    >>> round(estimate(problem).error, 6), round(estimate(problem, np.array([0])).error, 6)
    (0.086094, 0.134767)
    """
    kept, rest = _split(problem, features)
    n, lengths = problem.n_classes, problem.lengths
    token_mean, token_variance = np.zeros((n, n, n)), np.zeros((n, n, n))
    for i in range(n):
        for k in range(i + 1, n):
            a, a_rest = log_ratio(kept[i], kept[k]), log_ratio(rest[i : i + 1], rest[k : k + 1])[0]
            token_mean[i, k], token_variance[i, k] = token_moments(kept, rest, a, a_rest, variance)
            token_mean[k, i], token_variance[k, i] = -token_mean[i, k], token_variance[i, k]
    own = [token_moments(kept, rest, np.log(kept[r]), _log(rest[r]), variance) for r in range(n)]
    own_mean, own_variance = (np.array(part) for part in zip(*own, strict=True))
    pairwise, detection, error = np.zeros((n, n, n)), np.zeros((n, n)), 0.0
    for m, share in zip(lengths.values, lengths.shares, strict=True):
        better = _at_least(problem.thresholds, m * token_mean, m * token_variance)
        worse = _below(problem.thresholds, m * token_mean, m * token_variance)
        pairwise += share * better
        detection += share * better.prod(axis=1)
        error += float(share * (problem.prior @ worse))
    return ErrorEstimate(
        error=error,
        detection=detection,
        pairwise=pairwise,
        mean=lengths.mean * token_mean,
        variance=lengths.mean * token_variance + lengths.variance * token_mean**2,
        class_mean=lengths.mean * own_mean,
        class_variance=lengths.mean * own_variance + lengths.variance * own_mean**2,
    )


def token_moments(p: Array, rest: Array, a: Array, a_rest: float, variance: str = "exact") -> tuple[Array, Array]:
    """Mean and variance of one token's value, (C,) each, where kept features of probabilities ``p`` (C, k) are worth a.

    The ``rest`` (C,) is worth ``a_rest``. Documents of m tokens have m times as much. "exact" is sum p (a - mean)^2;
    "uncorrelated" ignores that one kept feature's tokens are no other's; "compensated" makes up for that as if all
    were worth the same.

    >>> p, a = np.array([[0.5, 0.25]]), np.array([1.0, 1.0])
    >>> [float(token_moments(p, np.array([0.25]), a, 0.0, name)[1][0]) for name in VARIANCES]
    [0.1875, 0.4375, 0.1875]
    """
    mode = mode_of(variance)
    kept, weight = (p * a).sum(axis=1), p.sum(axis=1)
    mean = kept + rest * a_rest
    if mode == EXACT:
        return mean, (p * (a - mean[:, None]) ** 2).sum(axis=1) + rest * (a_rest - mean) ** 2
    apart = (p * (1 - p) * a**2).sum(axis=1) - 2 * rest * a_rest * kept + rest * weight * a_rest**2
    if mode == COMPENSATED:
        share = np.divide(kept, weight, out=np.zeros(len(p)), where=weight > 0)
        apart = apart - share**2 * ((p * (1 - p)).sum(axis=1) - rest * weight)
    return mean, np.maximum(apart, 0.0)


def mode_of(variance: str) -> int:
    """The number kernels know a formula by."""
    if variance not in VARIANCES:
        raise InputError(f"variance={variance!r} is none of {', '.join(map(repr, VARIANCES))}; take one of these")
    return VARIANCES[variance]


def log_ratio(p: Array, q: Array) -> Array:
    """log(p / q), where what differs by no more than rounding does not differ at all; 0 for 0 / 0."""
    p, q = np.asarray(p, np.float64), np.asarray(q, np.float64)
    near = (2 * p > q) & (p < 2 * q)
    some = np.abs(p - q) > ALIKE * np.maximum(p, q)
    out = np.log1p(np.divide(p - q, q, out=np.zeros(p.shape), where=some & near))
    np.log(np.divide(p, q, out=np.ones(p.shape), where=some & ~near), out=out, where=some & ~near)
    return out


def _split(problem: ErrorProblem, features: Array | None) -> tuple[Array, Array]:
    """Probabilities of the kept features, (C, k), and of all others together, (C,)."""
    if features is None:
        return problem.P, np.zeros(problem.n_classes)
    others = np.ones(problem.n_features, bool)
    others[features] = False
    return problem.P[:, ~others], problem.P[:, others].sum(axis=1)


def _at_least(thresholds: Array, mean: Array, variance: Array) -> Array:
    """(C, C, C) P(L_ik >= T_ik | j); 1 for i = k."""
    ahead = mean - thresholds[:, :, None]
    return np.where(variance > 0, _above(ahead, variance), ahead >= 0)


def _below(thresholds: Array, mean: Array, variance: Array) -> Array:
    """(C,) probability that a document of class j is taken for another. Small ones are as precise as large ones.

    This is 1 - product of P(L_jk >= T_jk | j) without a normalisation, which makes more than two classes worse. Where a
    certain comparison ends in a tie, the first class is said, so that equal classes are not all right at once.
    """
    own = np.arange(len(thresholds))
    ahead = mean[own, :, own] - thresholds
    spread = variance[own, :, own]
    certain = (ahead < 0) | ((ahead == 0) & (own[:, None] > own))
    wrong = np.where(spread > 0, _above(-ahead, spread), certain)
    missed = np.zeros(len(own))
    for k in own:
        missed += np.where(own == k, 0.0, wrong[:, k]) * (1 - missed)
    return missed


def _above(ahead: Array, variance: Array) -> Array:
    """Probability that a normal variable of this mean is above 0."""
    from scipy.special import erfc  # here, as most fits predict no errors

    return np.asarray(0.5 * erfc(-ahead / np.sqrt(2 * np.where(variance > 0, variance, 1.0))))


def _prior(prior: Any, n_classes: int) -> Array:
    if prior is None:
        return np.full(n_classes, 1 / n_classes)
    given = np.asarray(prior, np.float64)
    if given.shape != (n_classes,) or not _sane(given) or abs(given.sum() - 1) > SUM_OF_ONE:
        raise InputError(
            f"prior={_short(prior)} is not a probability for each of {n_classes} classes; give that many numbers of 0 "
            "or more that add up to 1"
        )
    return given / given.sum()


def _sane(numbers: Array) -> bool:
    return bool(np.isfinite(numbers).all() and (numbers >= 0).all())


def _log(rest: float) -> float:
    return float(np.log(rest)) if rest > 0 else 0.0


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
