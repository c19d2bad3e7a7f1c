"""Compiled bounds of the predicted error: what no feature of a box, and no set of a subtree, makes smaller.

Names are those of `error_kernels`.

References: docs/mathematics.md 8.3.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from nfs_dask.arrays.compiling import kernel
from nfs_dask.solvers.predicted_error.error_kernels import error_of_moments, log_ratio, missed_share, put

SAFE = 1e-9  # relative: more than the rounding of any bound here, once moments have their slack
SLACK = 1e-12  # of a mean or a deviation, relative to the largest value: more than rounding and ALIKE make of either
TIES = 1e-12  # relative: errors this close are equal


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
    now = log_ratio(r, s)
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
            out[b] += (1 - SAFE) * prior[j] * missed_share(j, means, least, most, task)


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
            put(P[:, d], w, m, s, w, m, s)
        return error_of_moments(w, m, s, outside, task)
    means, least, most = np.zeros(n), np.zeros(n), np.zeros(n)
    total = 0.0
    for j in range(n):
        for k in range(n):
            if k != j:
                kept, at = weight[j] * mean[j, k], mean[j, k]
                smallest, largest = extremes[0, t, j, k], extremes[1, t, j, k]
                low, high = kept + rest[j] * log_ratio(rest[j], rest[k]), kept + sums[t, j, k]
                if outside[j] > 0:
                    a = log_ratio(outside[j], outside[k])
                    high += outside[j] * a
                    smallest, largest = min(smallest, a), max(largest, a)
                near, _ = _gap(low, high, at, at)
                _, far = _gap(smallest, largest, at, at)
                means[k], least[k], most[k] = _widened(
                    high, spread[j, k] + weight[j] * near, spread[j, k] + rest[j] * far,
                    max(abs(smallest), abs(largest), abs(at)),
                )  # fmt: skip
        total += prior[j] * missed_share(j, means, least, most, task)
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
                a = log_ratio(P[j, d], P[i, d])
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
                error = error_of_moments(weight[t], mean[t], spread[t], rest, task)
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
            put(x, weight[t], mean[t], spread[t], weight[t + 1], mean[t + 1], spread[t + 1])
            picked[t + 1] |= bits[t]
        else:
            outside[t + 1] += x
        t += 1
