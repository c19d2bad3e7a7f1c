"""The loop that walks up the sorted values of several classes until their weights reach half.

References: SC (Calafiore and Fracastoro 2019) (15), (16).
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numba.extending import register_jitable

from nfs_dask.arrays.compiling import kernel
from nfs_dask.arrays.doubles import two_sum
from nfs_dask.arrays.exact_kernels import (
    gather,
    loose_plus,
    loose_triple_plus,
    pair_plus,
    triple_plus,
    triple_plus_product,
    two_product,
)
from nfs_dask.solvers.solution import Array

Sums: TypeAlias = tuple[float, float, float]

DONE, UNDECIDED = 0, 1
LESS_OR_ASK, MORE, EQUAL = 0, 1, 2  # what is known of a weight near half


@register_jitable
def _add_distance(sums: Sums, distance: float, rest: float, w: float) -> Sums:
    """A sum of three doubles, and w * (distance + rest), not settled yet."""
    sums = loose_triple_plus(*sums, *two_product(w, distance))
    return loose_triple_plus(*sums, *two_product(w, rest))


@kernel
def find_medians(
    values: Array,
    value_weights: Array,
    starts: Array,
    counts: Array,
    points: Array,
    point_weights: Array,
    point_weights_low: Array,
    below: Array,
    below_low: Array,
    following: Array,
    class_weights: Array,
    class_weights_low: Array,
    inverse: Array,
    scales: Array,
    near: float,
    rounding: float,
    columns: Array,
    n_less: Array,
    verdicts: Array,
    middles: Array,
    reached: Array,
    reached_low: Array,
    status: Array,
) -> None:
    """The median of each column: the value at which weights reach half, or halfway to the next where they equal half.

    Class c has in column u the sorted values[u, starts[c, u]:][:counts[c, u]], of weight 1 where ``value_weights`` is
    empty; and few points[c, :, u], sorted too, of which those without weight are none. Further weights lie below all of
    these, and the least value above them is following[c, u]. Classes together are compared in whole numbers if there
    are scales. Else the ``n_less`` first weights that are near half are known to be less, and the verdict
    says of the next one; where it says nothing, the weights are handed back for a decision.
    """
    n_classes, n_points = points.shape[0], points.shape[1]
    at, point_at = np.zeros(n_classes, np.int64), np.zeros(n_classes, np.int64)
    cum, cum_low = np.zeros(n_classes), np.zeros(n_classes)
    weighted = value_weights.shape[0] > 0
    in_integers = scales[0] > 0
    half = 0
    for c in range(n_classes):
        if in_integers:
            half += scales[c] * (np.int64(class_weights[c]) + np.int64(class_weights_low[c]))
    for n in range(len(columns)):
        u = columns[n]
        status[u] = DONE
        about, whole, asked = -0.5 * n_classes, np.int64(-half), 0
        for c in range(n_classes):
            at[c], point_at[c] = 0, 0
            cum[c], cum_low[c] = below[c, u], below_low[c, u]
            about += cum[c] * inverse[c]
            if in_integers:
                whole += 2 * scales[c] * (np.int64(cum[c]) + np.int64(cum_low[c]))
        if n_points == 0 and not weighted and in_integers and (cum == 0).all():
            # Values below the medians of all single classes cannot be the one of all together.
            least = np.inf
            for c in range(n_classes):
                least = min(least, values[u, starts[c, u] + (counts[c, u] - 1) // 2])
            for c in range(n_classes):
                at[c] = np.searchsorted(values[u, starts[c, u] : starts[c, u] + counts[c, u]], least)
                cum[c] = at[c]
                about += cum[c] * inverse[c]
                whole += 2 * scales[c] * at[c]
        lower, found, equal = np.inf, False, False
        while True:
            value = np.inf
            for c in range(n_classes):
                while point_at[c] < n_points and point_weights[c, point_at[c], u] <= 0:
                    point_at[c] += 1
                if point_at[c] < n_points:
                    value = min(value, points[c, point_at[c], u])
                if at[c] < counts[c, u]:
                    value = min(value, values[u, starts[c, u] + at[c]])
            if found or value == np.inf:
                break
            for c in range(n_classes):
                more, more_low = 0.0, 0.0
                while at[c] < counts[c, u] and values[u, starts[c, u] + at[c]] == value:
                    w = value_weights[u, starts[c, u] + at[c]] if weighted else 1.0
                    more, more_low = gather(more, more_low, w)
                    at[c] += 1
                while point_at[c] < n_points and points[c, point_at[c], u] <= value:
                    p = point_at[c]
                    more, more_low = loose_plus(more, more_low, point_weights[c, p, u], point_weights_low[c, p, u])
                    point_at[c] += 1
                if more > 0:
                    cum[c], cum_low[c] = pair_plus(cum[c], cum_low[c], more, more_low)
                    about += more * inverse[c]
                    if in_integers:
                        whole += 2 * scales[c] * (np.int64(more) + np.int64(more_low))
            over = 0
            if in_integers:
                over = 1 if whole > 0 else 0 if whole == 0 else -1
            elif n_classes == 1:
                high, _ = pair_plus(2 * cum[0], 2 * cum_low[0], -class_weights[0], -class_weights_low[0])
                tolerance = rounding * class_weights[0]
                over = 1 if high > tolerance else 0 if high >= -tolerance else -1
            elif abs(about) > near * n_classes:
                over = 1 if about > 0 else -1
            else:
                asked += 1
                if asked <= n_less[u]:
                    over = -1
                elif verdicts[u] != LESS_OR_ASK:
                    over = 1 if verdicts[u] == MORE else 0
                else:
                    for c in range(n_classes):
                        reached[c, u], reached_low[c, u] = cum[c], cum_low[c]
                    status[u] = UNDECIDED
                    break
            if over >= 0:
                lower, found, equal = value, True, over == 0
                if not equal:
                    break
        if status[u] == UNDECIDED:
            continue
        if not equal:
            middles[u] = lower
            continue
        upper = value
        for c in range(n_classes):
            upper = min(upper, following[c, u])
        total = lower + upper
        middles[u] = 0.5 * total if abs(total) < np.inf else 0.5 * lower + 0.5 * upper


@kernel
def add_distances(
    values: Array,
    value_weights: Array,
    starts: Array,
    counts: Array,
    points: Array,
    point_weights: Array,
    point_weights_low: Array,
    middles: Array,
    sums_below: Array,
    sums_above: Array,
    distances: Array,
    distances_low: Array,
    lesser: Array,
    lesser_low: Array,
    greater: Array,
    greater_low: Array,
) -> None:
    """Sums of weight * |value - middle|, by way of three doubles, and of the weights on either side, of each class.

    Beyond the known values lie the weights that ``lesser`` and ``greater`` begin with, whose sums of weight * value are
    the ``sums_below`` and ``sums_above``, each (2 or 3, classes, columns).
    """
    n_classes, n_columns = counts.shape
    weighted = value_weights.shape[0] > 0
    for u in range(n_columns):
        middle = middles[u]
        for c in range(n_classes):
            less, less_low, more, more_low = lesser[c, u], lesser_low[c, u], greater[c, u], greater_low[c, u]
            sums = 0.0, 0.0, 0.0
            for p in range(len(sums_below)):
                sums = triple_plus(*sums, sums_above[p, c, u], -sums_below[p, c, u])
            if less > 0:
                sums = triple_plus_product(*sums, middle, less, less_low)
            if more > 0:
                sums = triple_plus_product(*sums, -middle, more, more_low)
            high, low, n_less, n_more = 0.0, 0.0, 0, 0
            for j in range(starts[c, u], starts[c, u] + counts[c, u]):
                x = values[u, j]
                distance, rest = two_sum(max(x, middle), -min(x, middle))
                if weighted:
                    w = value_weights[u, j]
                    sums = _add_distance(sums, distance, rest, w)
                    less, less_low = gather(less, less_low, w if x < middle else 0.0)
                    more, more_low = gather(more, more_low, w if x > middle else 0.0)
                else:
                    high, low = loose_plus(high, low, distance, rest)
                    n_less += x < middle
                    n_more += x > middle
            less, less_low = gather(less, less_low, n_less)
            more, more_low = gather(more, more_low, n_more)
            sums = triple_plus(*sums, high, low)
            for p in range(points.shape[1]):
                x, w, w_low = points[c, p, u], point_weights[c, p, u], point_weights_low[c, p, u]
                if w <= 0:  # no point; an edge may be as far away as there are doubles
                    continue
                distance, rest = two_sum(max(x, middle), -min(x, middle))
                sums = _add_distance(sums, distance, rest, w)
                if w_low != 0.0:
                    sums = _add_distance(sums, distance, rest, w_low)
                if x < middle:
                    less, less_low = loose_plus(less, less_low, w, w_low)
                elif x > middle:
                    more, more_low = loose_plus(more, more_low, w, w_low)
            sums = triple_plus(*sums, 0.0, 0.0)
            distances[c, u], distances_low[c, u] = sums[0], sums[1]
            lesser[c, u], lesser_low[c, u] = two_sum(less, less_low)
            greater[c, u], greater_low[c, u] = two_sum(more, more_low)
