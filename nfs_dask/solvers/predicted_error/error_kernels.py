"""Compiled arithmetic of the predicted error: a kept set, and what one more or one less feature makes of it.

For each pair of classes (j, k), a_d = log p_dj - log p_dk is averaged over the kept features under class j:
``weight`` (C,) is their mass, ``mean`` (C, C) the average, ``spread`` (C, C) the sum of p_d (a_d - mean)^2; such sums
never cancel. All others are one more feature, whose mass ``rest`` (2, C) is kept as pairs of doubles, as it is what is
left of 1; it is never less than that of the ``least`` (C,) probable feature. ``task`` is prior (C,), thresholds (C, C),
lengths of documents (n,) and their shares (n,).

References: ERR (22) to (26), (31) to (33); the bound of branch and bound: docs/mathematics.md 8.3.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from numba.extending import register_jitable

from nfs_dask.arrays.exact_kernels import gather, settle
from nfs_dask.arrays.kernels import kernel

ALIKE = 1e-13  # probabilities that differ by this share of them are equal, and rounding is no evidence
EXACT, UNCORRELATED, COMPENSATED = 0, 1, 2
SAFE = 1e-9  # relative: more than the rounding of any bound here, once moments have their slack
SLACK = 1e-12  # of a mean or a deviation, relative to the largest value: more than rounding and ALIKE make of either
TIES = 1e-12  # relative: errors this close are equal


@numba.njit(nogil=True)
def _log_ratio(p, q):
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
def _missed(j, mean, least, most, task):
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
def _error(weight, mean, spread, rest, task):
    """The error of a kept set."""
    prior = task[0]
    n = len(prior)
    means, variances = np.empty(n), np.empty(n)
    total = 0.0
    for j in range(n):
        if prior[j] > 0:
            for k in range(n):
                if k != j:
                    a = _log_ratio(rest[j], rest[k])
                    means[k], variances[k] = _joined(weight[j], mean[j, k], spread[j, k], rest[j], a)
            total += prior[j] * _missed(j, means, variances, variances, task)
    return total


@numba.njit(nogil=True)
def _put(x, weight, mean, spread, new_weight, new_mean, new_spread):
    """One more feature of probabilities x (C,); the new arrays may be the old ones."""
    for j in range(len(x)):
        w, p = weight[j], x[j]
        total = w + p
        for k in range(len(x)):
            if k != j:
                off = _log_ratio(p, x[k]) - mean[j, k]
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


@register_jitable
def _plus(high, low, p):
    """A pair of doubles and a double."""
    return settle(*gather(high, low, p))


@kernel
def add_up(P, columns, out):
    """Add up probabilities of some columns: out (2, C) += their sums, as pairs of doubles."""
    for j in range(len(P)):
        for t in range(len(columns)):
            out[0, j], out[1, j] = _plus(out[0, j], out[1, j], P[j, columns[t]])


@kernel
def keep(P, columns, weight, mean, spread, rest):
    """Keep some more columns, one after the other."""
    x = np.empty(len(P))
    for t in range(len(columns)):
        for j in range(len(P)):
            x[j] = P[j, columns[t]]
            rest[0, j], rest[1, j] = _plus(rest[0, j], rest[1, j], -x[j])
        _put(x, weight, mean, spread, weight, mean, spread)


@kernel
def error_now(weight, mean, spread, rest, prior, thresholds, lengths, shares):
    """The error of a kept set."""
    return _error(weight, mean, spread, rest[0], (prior, thresholds, lengths, shares))


@kernel
def errors_with(points, weight, mean, spread, rest, last, least, prior, thresholds, lengths, shares, out):
    """Errors (n,) with one more feature of probabilities ``points`` (n, C), which if ``last`` leaves no rest."""
    n = len(weight)
    task = (prior, thresholds, lengths, shares)
    new_weight, new_mean, new_spread, left = np.empty(n), np.zeros((n, n)), np.zeros((n, n)), np.zeros(n)
    for t in range(len(points)):
        _put(points[t], weight, mean, spread, new_weight, new_mean, new_spread)
        for j in range(n):
            left[j] = 0.0 if last else max(_plus(rest[0, j], rest[1, j], -points[t, j])[0], least[j])
        out[t] = _error(new_weight, new_mean, new_spread, left, task)


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
        _put(points[t], *old, behind[0][t], behind[1][t], behind[2][t])
    weight, mean, spread = np.zeros(n), np.zeros((n, n)), np.zeros((n, n))
    new_weight, new_mean, new_spread, left = np.empty(n), np.zeros((n, n)), np.zeros((n, n)), np.zeros(n)
    for t in range(size):
        others = behind[0][t + 1], behind[1][t + 1], behind[2][t + 1]
        _unite(weight, mean, spread, *others, new_weight, new_mean, new_spread)
        for j in range(n):
            left[j] = _plus(rest[0, j], rest[1, j], points[t, j])[0]
        out[t] = _error(new_weight, new_mean, new_spread, left, task)
        _put(points[t], weight, mean, spread, weight, mean, spread)


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
                rest[0, j], rest[1, j] = _plus(rest[0, j], rest[1, j], -x[j])
            _put(x, weight, mean, spread, weight, mean, spread)
        for j in range(n):
            left[j] = 0.0 if t == P.shape[1] else max(rest[0, j], least[j])
        out[t] = 0.0
        for j in range(n):
            if t > 0:
                squares[j] += x[j] * x[j]
            for k in range(n):
                if k != j:
                    if t > 0:
                        cross[j, k] += (x[j] * _log_ratio(x[j], x[k])) ** 2
                    means[k], variances[k] = _variance(
                        mode, weight[j], mean[j, k], spread[j, k], squares[j], cross[j, k], left[j],
                        _log_ratio(left[j], left[k]),
                    )  # fmt: skip
            if prior[j] > 0:
                out[t] += prior[j] * _missed(j, means, variances, variances, task)


@kernel
def prefix_moments(P, order, mode, rest, least, i, k, j, means, variances):
    """Mean and variance of one token's L_ik under class j for the first 0, 1, 2, ... columns of an order."""
    weight, mean, spread, squares, cross = 0.0, 0.0, 0.0, 0.0, 0.0
    for t in range(len(order) + 1):
        if t > 0:
            p = P[j, order[t - 1]]
            a = _log_ratio(P[i, order[t - 1]], P[k, order[t - 1]])
            for c in range(len(P)):
                rest[0, c], rest[1, c] = _plus(rest[0, c], rest[1, c], -P[c, order[t - 1]])
            total = weight + p
            off = a - mean
            mean += off * (p / total)
            spread += off * off * p * (weight / total)
            weight = total
            squares += p * p
            cross += (p * a) ** 2
        some = t < P.shape[1]
        a = _log_ratio(max(rest[0, i], least[i]), max(rest[0, k], least[k])) if some else 0.0
        left = max(rest[0, j], least[j]) if some else 0.0
        means[t], variances[t] = _variance(mode, weight, mean, spread, squares, cross, left, a)


@numba.njit(nogil=True)
def _gap(low, high, other_low, other_high):
    """Squares of the least and the largest distance between two intervals."""
    near = max(low - other_high, other_low - high, 0.0)
    far = max(high - other_low, other_high - low)
    return near * near, far * far


@numba.njit(nogil=True)
def _widened(mean, least, most, largest):
    """Bounds of a mean and a variance of values of at most this size, so wide that they hold of rounded moments, too.

    A variance is the square of a distance, from values to their mean: it is that which values that are off move by no
    more than they are off themselves, however small it is.
    """
    slack = SLACK * (1.0 + largest)
    return mean + slack, max(math.sqrt(least) - slack, 0.0) ** 2, (math.sqrt(most) + slack) ** 2


@numba.njit(nogil=True)
def _box_moments(j, k, low, high, a_low, a_high, weight, mean, spread, rest):
    """The largest mean, least and largest variance of L_jk under j, with one of the features of a box added.

    The mean gains x_j log(x_j / x_k) + (r_j - x_j) log((r_j - x_j) / (r_k - x_k)). Where the feature's ratio is above
    that of the rest, this grows with x_j and falls with x_k, and along rays; where it is below, the other way round.
    """
    r, s = rest[j], rest[k]
    now = _log_ratio(r, s)
    gain = r * now
    if a_high > now:
        x, y = high[j], high[j] * math.exp(-a_high)
        gain = max(gain, x * a_high + (r - x) * math.log((r - x) / (s - y)))
    if a_low < now:
        x, y = high[k] * math.exp(a_low), high[k]
        gain = max(gain, x * a_low + (r - x) * math.log((r - x) / (s - y)))
    rest_low, rest_high = math.log((r - high[j]) / (s - low[k])), math.log((r - low[j]) / (s - high[k]))
    w, m = weight[j], mean[j, k]
    near, far = _gap(a_low, a_high, m, m)
    near_rest, far_rest = _gap(rest_low, rest_high, m, m)
    near_both, far_both = _gap(a_low, a_high, rest_low, rest_high)
    total = w + r
    less = (w * (low[j] * near + (r - high[j]) * near_rest) + low[j] * (r - high[j]) * near_both) / total
    more = (w * (high[j] * far + (r - low[j]) * far_rest) + high[j] * (r - low[j]) * far_both) / total
    largest = max(abs(a_low), abs(a_high), abs(rest_low), abs(rest_high), abs(m))
    return _widened(w * m + gain, spread[j, k] + less, spread[j, k] + more, largest)


@kernel
def box_bounds(low, high, ratios, weight, mean, spread, rest, prior, thresholds, lengths, shares, out):
    """Bounds (B,): no feature of box b makes the error smaller than this, when it is added.

    Probabilities of a box lie between ``low`` and ``high`` (B, C), their log ratios between ``ratios`` (B, 2, pairs),
    pairs j < k in order; a box of nothing has low > high, and inf.
    """
    n = len(prior)
    task = (prior, thresholds, lengths, shares)
    means, least, most = np.zeros(n), np.zeros(n), np.zeros(n)
    for b in range(len(out)):
        out[b] = 0.0
        if low[b, 0] > high[b, 0]:
            out[b] = np.inf
            continue
        inside = True
        for j in range(n):
            inside = inside and high[b, j] < 0.5 * rest[0, j]
        if not inside:
            continue
        for j in range(n):
            for k in range(n):
                if k != j:
                    first, second = min(j, k), max(j, k)
                    pair = first * n - first * (first + 1) // 2 + second - first - 1
                    a_low, a_high = ratios[b, 0, pair], ratios[b, 1, pair]
                    if j > k:
                        a_low, a_high = -a_high, -a_low
                    means[k], least[k], most[k] = _box_moments(
                        j, k, low[b], high[b], a_low, a_high, weight, mean, spread, rest[0]
                    )
            out[b] += (1 - SAFE) * prior[j] * _missed(j, means, least, most, task)


@numba.njit(nogil=True)
def _least_error(t, depth, monotone, P, outside, sums, extremes, rest, task):
    """A lower bound of the error of all sets that are decided up to feature t.

    A set keeps what is ``kept`` already and some of the undecided features; those others and what is ``outside`` are
    its rest. As p log(p / q) of parts is never less than that of their sum, a set's mean is largest if all undecided
    features are kept, and smallest if none is. A variance is at least what is kept contributes about any mean in
    between. It is at most what a set has about the mean of what is kept, and no value of the undecided features nor of
    any rest of them, whose ratio of sums lies between those of its parts, is beyond the extremes of the undecided
    features and of all that is outside, which may be features that are no candidates.
    """
    weight, mean, spread = depth
    n, prior = len(P), task[0]
    if monotone:
        w, m, s = weight.copy(), mean.copy(), spread.copy()
        for d in range(t, P.shape[1]):
            _put(P[:, d], w, m, s, w, m, s)
        return _error(w, m, s, outside, task)
    means, least, most = np.zeros(n), np.zeros(n), np.zeros(n)
    total = 0.0
    for j in range(n):
        for k in range(n):
            if k != j:
                kept, at = weight[j] * mean[j, k], mean[j, k]
                smallest, largest = extremes[0, t, j, k], extremes[1, t, j, k]
                low, high = kept + rest[j] * _log_ratio(rest[j], rest[k]), kept + sums[t, j, k]
                if outside[j] > 0:
                    a = _log_ratio(outside[j], outside[k])
                    high += outside[j] * a
                    smallest, largest = min(smallest, a), max(largest, a)
                near, _ = _gap(low, high, at, at)
                _, far = _gap(smallest, largest, at, at)
                means[k], least[k], most[k] = _widened(
                    high, spread[j, k] + weight[j] * near, spread[j, k] + rest[j] * far,
                    max(abs(smallest), abs(largest), abs(at)),
                )  # fmt: skip
        total += prior[j] * _missed(j, means, least, most, task)
    return total


@kernel
def search_subtree(P, bits, k, head, monotone, others, best, chosen, counts, prior, thresholds, lengths, shares):
    """The best set of k of few features, among those that begin with the decisions ``head`` (1 kept, 0 not).

    ``others`` (C,) is the mass of features that are no candidates.

    ``best`` (2,), the smallest error and that of ``chosen`` (1,), a set of bits, are those so far and leave as such; of
    equal errors the set whose lowest bits come first. ``counts`` (2,) += sets evaluated, bounds evaluated.
    """
    n, n_features = P.shape
    task = (prior, thresholds, lengths, shares)
    weight = np.zeros((n_features + 1, n))
    mean, spread = np.zeros((n_features + 1, n, n)), np.zeros((n_features + 1, n, n))
    outside, taken = np.zeros((n_features + 1, n)), np.zeros(n_features + 1, np.int64)
    picked, decision = np.zeros(n_features + 1, np.int64), np.zeros(n_features + 1, np.int64)
    mass, sums = np.zeros((n_features + 1, n)), np.zeros((n_features + 1, n, n))
    extremes = np.empty((2, n_features + 1, n, n))
    extremes[0, n_features], extremes[1, n_features] = np.inf, -np.inf
    for d in range(n_features - 1, -1, -1):
        for j in range(n):
            mass[d, j] = mass[d + 1, j] + P[j, d]
            for i in range(n):
                a = _log_ratio(P[j, d], P[i, d])
                sums[d, j, i] = sums[d + 1, j, i] + P[j, d] * a
                extremes[0, d, j, i] = min(extremes[0, d + 1, j, i], a)
                extremes[1, d, j, i] = max(extremes[1, d + 1, j, i], a)
    outside[0] = others
    t, entering = 0, True
    while True:
        if entering and 0 <= k - taken[t] <= n_features - t:
            rest = outside[t] + mass[t]
            if taken[t] == k:
                counts[0] += 1
                error = _error(weight[t], mean[t], spread[t], rest, task)
                apart = picked[t] ^ chosen[0]
                first = (picked[t] & apart & -apart) != 0
                best[0] = min(best[0], error)
                if best[1] > best[0] * (1 + TIES) or (error <= best[0] * (1 + TIES) and first):
                    best[1], chosen[0] = error, picked[t]
                entering = False
            elif t >= len(head):
                counts[1] += 1
                depth = (weight[t], mean[t], spread[t])
                bound = _least_error(t, depth, monotone, P, outside[t], sums, extremes, rest, task)
                entering = bound * (1 - SAFE) <= best[0] * (1 + TIES)
            if entering:
                decision[t] = head[t] if t < len(head) else 1
        else:
            entering = False
        if not entering:  # back to the last feature that was kept and can be left out
            t -= 1
            while t >= len(head) and decision[t] == 0:
                t -= 1
            if t < len(head):
                return
            decision[t], entering = 0, True
        x = P[:, t]
        weight[t + 1], mean[t + 1], spread[t + 1], outside[t + 1] = weight[t], mean[t], spread[t], outside[t]
        taken[t + 1], picked[t + 1] = taken[t] + decision[t], picked[t]
        if decision[t] == 1:
            _put(x, weight[t], mean[t], spread[t], weight[t + 1], mean[t + 1], spread[t + 1])
            picked[t + 1] |= bits[t]
        else:
            outside[t + 1] += x
        t += 1
