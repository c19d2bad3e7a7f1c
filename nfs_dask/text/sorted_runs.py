"""Merging runs of sorted strings: which of them are equal, and in which order distinct ones come.

A tree of losers, in which each head of a run carries how many bytes it shares with the string that came out last. Of
two heads the one that shares more is less, and no byte is looked at; where both share as many, they are compared from
there on. So each byte of a string is looked at about once, and all runs are read from front to back. Nothing is held
but two numbers a string.
"""

from __future__ import annotations

import numba
import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.arrays.kernels import kernel, trailing_zeros
from nfs_dask.text.strings import Strings
from nfs_dask.text.text_kernels import LITTLE, load_eight

_ENDED = -1  # in place of shared bytes, of a run that is at its end: less than any number of them


def merge_runs(strings: Strings, starts: Array) -> tuple[Array, Array]:
    """For each string the number of the distinct one that it is, (n,) int32; and one of each, ascending, (m,) int64.

    Run r is strings ``starts[r] .. starts[r + 1] - 1``, each run ascending and without repetition.
    """
    numbers, places = np.empty(len(strings), np.int32), np.empty(len(strings), np.int64)
    width = 1 << max(0, len(starts) - 2).bit_length()
    losers, shared = np.full(width, -1, np.int64), np.zeros(width, np.int64)
    heads, ends = np.zeros((2, width), np.int64)
    heads[: len(starts) - 1], ends[: len(starts) - 1] = starts[:-1], starts[1:]
    n = _merge(strings.offsets, strings.text, heads, ends, losers, shared, numbers, places)
    return numbers, places[:n]


# Inlined by numba itself: calls that pass the arrays take as long again as all of the merge.


@numba.njit(nogil=True, inline="always")
def _shared(offsets, text, a, b, known):
    """How many bytes two strings share, of which so many are known to be."""
    i, j = offsets[a] + known, offsets[b] + known
    most = min(offsets[a + 1] - i, offsets[b + 1] - j)
    n = 0
    while n < most:
        if LITTLE and max(i, j) + n + 8 <= len(text):
            differ = load_eight(text, i + n) ^ load_eight(text, j + n)
            if differ:
                return known + min(most, n + np.int64(trailing_zeros(differ) >> np.uint64(3)))
            n += 8
        elif text[i + n] != text[j + n]:
            return known + n
        else:
            n += 1
    return known + most


@numba.njit(nogil=True, inline="always")
def _after(offsets, text, a, b, same):
    """Whether string a comes after string b, with which it shares so many bytes and not the next."""
    i, j = offsets[a] + same, offsets[b] + same
    return i < offsets[a + 1] and (j == offsets[b + 1] or text[i] > text[j])


@kernel
def _merge(offsets, text, heads, ends, losers, shared, numbers, places):
    """``losers`` has a run for each inner node of the tree, -1 at first, and ``shared`` what its head shares.

    ``heads`` is where each run begins, and goes on from there; without a check of shapes, whose message is all of
    numba's strings, which take a third of what a first ingest compiles.
    """
    width = len(losers)
    n, entered, best, same = 0, 0, 0, 0
    while entered < width or same != _ENDED:
        if entered < width:  # at first all runs climb to where nobody was before, the last one to the top
            climber, own = entered, 0 if heads[entered] < ends[entered] else _ENDED
            entered += 1
        else:
            head = heads[best]
            if n == 0 or same < offsets[head + 1] - offsets[head]:
                places[n] = head
                n += 1
            numbers[head] = n - 1
            heads[best] = head + 1
            climber, own = best, _ENDED
            if head + 1 < ends[best]:
                own = _shared(offsets, text, head, head + 1, 0)
        node = (climber + width) >> 1
        while node and losers[node] >= 0:
            other, others = losers[node], shared[node]
            if own < others:
                losers[node], shared[node] = climber, own
                climber, own = other, others
            elif own == others and own != _ENDED:
                a, b = heads[climber], heads[other]
                both = _shared(offsets, text, a, b, own)
                if _after(offsets, text, a, b, both):
                    losers[node], climber = climber, other
                shared[node] = both
            node >>= 1
        if node:
            losers[node], shared[node] = climber, own
        else:
            best, same = climber, own
    return n
