"""Compiled arithmetic of the predicted error: a kept set, and what one more or one less feature makes of it.

For each pair of classes (j, k), a_d = log p_dj - log p_dk is averaged over the kept features under class j:
``weight`` (C,) is their mass, ``mean`` (C, C) the average, ``spread`` (C, C) the sum of p_d (a_d - mean)^2; such sums
never cancel. All others are one more feature, whose mass ``rest`` (2, C) is kept as pairs of doubles, as it is what is
left of 1; it is never less than that of the ``least`` (C,) probable feature. ``task`` is prior (C,), thresholds (C, C),
lengths of documents (n,) and their shares (n,).

References: ERR (22) to (26), (31) to (33); docs/mathematics.md 8.1 and 8.2.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from nfs_dask.arrays.compiling import kernel
from nfs_dask.arrays.exact_kernels import add_to_pair

ALIKE = 1e-13  # probabilities that differ by this share of them are equal, and rounding is no evidence
EXACT, UNCORRELATED, COMPENSATED = 0, 1, 2


@numba.njit(nogil=True)
def log_ratio(p, q):
    d = p - q
    if abs(d) <= ALIKE * max(p, q):
        return 0.0
    return math.log1p(d / q) if 2 * p > q and p < 2 * q else math.log(p / q)


@numba.njit(nogil=True)
def _joined(weight, mean, spread, rest, a):
    """Mean and variance over kept features and the rest, of value ``a``."""
    if rest <= 0:
        return weight * mean, spread
    off = a - mean
    return weight * mean + rest * a, spread + weight * (rest / (weight + rest)) * off * off


@numba.njit(nogil=True)
def _variance(mode, weight, mean, spread, squares, cross, rest, a):
    """As `_joined`, by one of three formulas; ``squares`` is the sum of p^2, ``cross`` that of p^2 a^2."""
    first, exact = _joined(weight, mean, spread, rest, a)
    if mode == EXACT:
        return first, exact
    kept = weight * mean
    variance = spread + kept * mean - cross - 2 * rest * a * kept + rest * weight * a * a
    if mode == COMPENSATED and weight > 0:
        share = kept / weight
        variance -= share * share * (weight - squares - rest * weight)
    return first, max(variance, 0.0)


@numba.njit(nogil=True)
def missed_share(j, mean, least, most, task):
    """Probability that a document of class j is taken for another, from moments of one token against each class.

    Means of at most ``mean`` and variances from ``least`` to ``most`` make it a lower bound.
    """
    prior, thresholds, lengths, shares = task
    total = 0.0
    for i in range(len(lengths)):
        m, missed = lengths[i], 0.0
        for k in range(len(prior)):
            if k != j:
                ahead = m * mean[k] - thresholds[j, k]
                v = m * (least[k] if ahead > 0 else most[k])
                if v > 0:
                    wrong = 0.5 * math.erfc(ahead / math.sqrt(2 * v))
                else:  # certain; of equal classes the first is said
                    wrong = 0.0 if ahead > 0 or (ahead == 0 and j < k) else 1.0
                missed += wrong * (1 - missed)
        total += shares[i] * missed
    return total


@numba.njit(nogil=True)
def error_of_moments(weight, mean, spread, rest, task):
    """The error of a kept set."""
    prior = task[0]
    n = len(prior)
    means, variances = np.empty(n), np.empty(n)
    total = 0.0
    for j in range(n):
        if prior[j] > 0:
            for k in range(n):
                if k != j:
                    a = log_ratio(rest[j], rest[k])
                    means[k], variances[k] = _joined(weight[j], mean[j, k], spread[j, k], rest[j], a)
            total += prior[j] * missed_share(j, means, variances, variances, task)
    return total


@numba.njit(nogil=True)
def put(x, weight, mean, spread, new_weight, new_mean, new_spread):
    """One more feature of probabilities x (C,); the new arrays may be the old ones."""
    for j in range(len(x)):
        w, p = weight[j], x[j]
        total = w + p
        for k in range(len(x)):
            if k != j:
                off = log_ratio(p, x[k]) - mean[j, k]
                new_mean[j, k] = mean[j, k] + off * (p / total)
                new_spread[j, k] = spread[j, k] + off * off * p * (w / total)
        new_weight[j] = total


@numba.njit(nogil=True)
def _unite(weight, mean, spread, other_weight, other_mean, other_spread, new_weight, new_mean, new_spread):
    """Two sets of features together."""
    for j in range(len(weight)):
        total = weight[j] + other_weight[j]
        share = other_weight[j] / total if total > 0 else 0.0
        for k in range(len(weight)):
            if k != j:
                off = other_mean[j, k] - mean[j, k]
                new_mean[j, k] = mean[j, k] + off * share
                new_spread[j, k] = spread[j, k] + other_spread[j, k] + off * off * weight[j] * share
        new_weight[j] = total


@kernel
def add_up(P, columns, out):
    """Add up probabilities of some columns: out (2, C) += their sums, as pairs of doubles."""
    for j in range(len(P)):
        for t in range(len(columns)):
            out[0, j], out[1, j] = add_to_pair(out[0, j], out[1, j], P[j, columns[t]])


@kernel
def keep(P, columns, weight, mean, spread, rest):
    """Keep some more columns, one after the other."""
    x = np.empty(len(P))
    for t in range(len(columns)):
        for j in range(len(P)):
            x[j] = P[j, columns[t]]
            rest[0, j], rest[1, j] = add_to_pair(rest[0, j], rest[1, j], -x[j])
        put(x, weight, mean, spread, weight, mean, spread)


@kernel
def error_now(weight, mean, spread, rest, prior, thresholds, lengths, shares):
    """The error of a kept set."""
    return error_of_moments(weight, mean, spread, rest[0], (prior, thresholds, lengths, shares))


@kernel
def errors_with(points, weight, mean, spread, rest, last, least, prior, thresholds, lengths, shares, out):
    """Errors (n,) with one more feature of probabilities ``points`` (n, C), which if ``last`` leaves no rest."""
    n = len(weight)
    task = (prior, thresholds, lengths, shares)
    new_weight, new_mean, new_spread, left = np.empty(n), np.zeros((n, n)), np.zeros((n, n)), np.zeros(n)
    for t in range(len(points)):
        put(points[t], weight, mean, spread, new_weight, new_mean, new_spread)
        for j in range(n):
            left[j] = 0.0 if last else max(add_to_pair(rest[0, j], rest[1, j], -points[t, j])[0], least[j])
        out[t] = error_of_moments(new_weight, new_mean, new_spread, left, task)


@kernel
def errors_without(points, rest, prior, thresholds, lengths, shares, out):
    """Errors (n,) with one less of the kept features, whose probabilities are ``points`` (n, C).

    Those before it and those behind it are united: taking it away from the moments of all would leave rounding errors
    where there is nothing else.
    """
    size, n = points.shape
    task = (prior, thresholds, lengths, shares)
    behind = np.zeros((size + 1, n)), np.zeros((size + 1, n, n)), np.zeros((size + 1, n, n))
    for t in range(size - 1, -1, -1):
        old = behind[0][t + 1], behind[1][t + 1], behind[2][t + 1]
        put(points[t], *old, behind[0][t], behind[1][t], behind[2][t])
    weight, mean, spread = np.zeros(n), np.zeros((n, n)), np.zeros((n, n))
    new_weight, new_mean, new_spread, left = np.empty(n), np.zeros((n, n)), np.zeros((n, n)), np.zeros(n)
    for t in range(size):
        others = behind[0][t + 1], behind[1][t + 1], behind[2][t + 1]
        _unite(weight, mean, spread, *others, new_weight, new_mean, new_spread)
        for j in range(n):
            left[j] = add_to_pair(rest[0, j], rest[1, j], points[t, j])[0]
        out[t] = error_of_moments(new_weight, new_mean, new_spread, left, task)
        put(points[t], weight, mean, spread, weight, mean, spread)


@kernel
def prefix_errors(P, order, mode, rest, least, prior, thresholds, lengths, shares, out):
    """Errors (len(order) + 1,) of the first 0, 1, 2, ... columns of an order."""
    n = len(P)
    task = (prior, thresholds, lengths, shares)
    weight, mean, spread = np.zeros(n), np.zeros((n, n)), np.zeros((n, n))
    squares, cross = np.zeros(n), np.zeros((n, n))
    x, left, means, variances = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    for t in range(len(order) + 1):
        if t > 0:
            for j in range(n):
                x[j] = P[j, order[t - 1]]
                rest[0, j], rest[1, j] = add_to_pair(rest[0, j], rest[1, j], -x[j])
            put(x, weight, mean, spread, weight, mean, spread)
        for j in range(n):
            left[j] = 0.0 if t == P.shape[1] else max(rest[0, j], least[j])
        out[t] = 0.0
        for j in range(n):
            if t > 0:
                squares[j] += x[j] * x[j]
            for k in range(n):
                if k != j:
                    if t > 0:
                        cross[j, k] += (x[j] * log_ratio(x[j], x[k])) ** 2
                    means[k], variances[k] = _variance(
                        mode, weight[j], mean[j, k], spread[j, k], squares[j], cross[j, k], left[j],
                        log_ratio(left[j], left[k]),
                    )  # fmt: skip
            if prior[j] > 0:
                out[t] += prior[j] * missed_share(j, means, variances, variances, task)


@kernel
def prefix_moments(P, order, mode, rest, least, i, k, j, means, variances):
    """Mean and variance of one token's L_ik under class j for the first 0, 1, 2, ... columns of an order."""
    weight, mean, spread, squares, cross = 0.0, 0.0, 0.0, 0.0, 0.0
    for t in range(len(order) + 1):
        if t > 0:
            p = P[j, order[t - 1]]
            a = log_ratio(P[i, order[t - 1]], P[k, order[t - 1]])
            for c in range(len(P)):
                rest[0, c], rest[1, c] = add_to_pair(rest[0, c], rest[1, c], -P[c, order[t - 1]])
            total = weight + p
            off = a - mean
            mean += off * (p / total)
            spread += off * off * p * (weight / total)
            weight = total
            squares += p * p
            cross += (p * a) ** 2
        some = t < P.shape[1]
        a = log_ratio(max(rest[0, i], least[i]), max(rest[0, k], least[k])) if some else 0.0
        left = max(rest[0, j], least[j]) if some else 0.0
        means[t], variances[t] = _variance(mode, weight, mean, spread, squares, cross, left, a)
