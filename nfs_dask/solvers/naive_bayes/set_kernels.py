"""Compiled: which columns are the best, and what a set of them adds up to.

Written for a short time to compile: nothing is allocated or sliced here, as each such operation of numpy's takes longer
to compile than a loop. Who calls brings the memory, and says how much of it counts.
"""

from __future__ import annotations

from nfs_dask.arrays.compiling import inlined_part, kernel_part

LONGEST = 8192


@kernel_part
def pairwise(values, n, sums, rights):
    """Sum of the first n values, to the bit as numpy adds up a row: of halves, and of these, down to 128 numbers.

    So it does for up to `LONGEST` numbers; some versions of numpy add up more in pieces.
    ``sums`` and ``rights`` have 64 places, for sums of left halves and for the lengths of right ones still to come.
    """
    first, depth = 0, 0
    while True:
        while n > 128:
            half = (n >> 4) << 3
            rights[depth] = n - half
            depth += 1
            n = half
        total = _sum_short(values, first, first + n)
        first += n
        while depth > 0 and rights[depth - 1] == 0:
            depth -= 1
            total += sums[depth]
        if depth == 0:
            return total
        sums[depth - 1] = total
        n = rights[depth - 1]
        rights[depth - 1] = 0


@inlined_part
def _sum_short(values, first, end):
    """Eight sums side by side, and those that are left over."""
    a = b = c = d = e = f = g = h = 0.0
    last = first + ((end - first) & -8)
    for i in range(first, last, 8):
        a += values[i]
        b += values[i + 1]
        c += values[i + 2]
        d += values[i + 3]
        e += values[i + 4]
        f += values[i + 5]
        g += values[i + 6]
        h += values[i + 7]
    total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for i in range(last, end):
        total += values[i]
    return total


@kernel_part
def kth(values, sizes, n, k):
    """The k-th largest of the first n values, each counted ``sizes`` times; there are at least k. Overwrites both.

    Each round keeps those on the side of a pivot where the k-th one is.
    """
    chance = 1
    while True:
        chance = (chance * 1103515245 + 12345) & 0x7FFFFFFF
        pivot = values[(chance * n) >> 31]
        above = equal = 0
        for i in range(n):
            if values[i] > pivot:
                above += sizes[i]
            if values[i] == pivot:
                equal += sizes[i]
        if above < k <= above + equal:
            return pivot
        side = 1.0
        if k > above:
            side = -1.0
            k -= above + equal
        kept = 0
        for i in range(n):
            value = values[i]
            values[kept] = value
            sizes[kept] = sizes[i]
            if side * value > side * pivot:
                kept += 1
        n = kept


@inlined_part
def take_best(gain, sizes, n_free, k, last, cells, counts):
    """Write the k features of largest gain, all from ``n_free`` on among them; of equal ones those of the lower cell.

    The k-th gain is ``last``. Returns how many cells these are; there is a place more than for k of them.
    """
    left, n = k, 0
    for i in range(len(gain)):
        if i >= n_free or gain[i] > last:
            left -= sizes[i]
    for i in range(len(gain)):
        cells[n] = i
        counts[n] = sizes[i]
        if i >= n_free or gain[i] > last:
            n += 1
        elif gain[i] == last and left > 0:
            if counts[n] > left:
                counts[n] = left
            left -= counts[n]
            n += 1
    return n
