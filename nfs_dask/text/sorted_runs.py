"""Merging runs of sorted strings: which of them are equal, and in which order distinct ones come.

A tree of losers, in which each head of a run carries how many bytes it shares with the string that came out last. Of
two heads the one that shares more is less, and no byte is looked at; where both share as many, they are compared from
there on. So each byte of a string is looked at about once, and all runs are read from front to back. Nothing is held
but two numbers a string.
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

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
    n = _merge(strings.offsets, strings.text, starts, losers, shared, numbers, places)
    return numbers, places[:n]


@register_jitable
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
        else:
            if text[i + n] != text[j + n]:
                return known + n
            n += 1
    return known + most


@register_jitable
def _play(offsets, text, heads, one, own, other, others):
    """Whether the head of one run is not after that of another, and how many bytes they share.

    ``own`` and ``others`` are what they share with the string before both.
    """
    if own != others:
        return own > others, min(own, others)
    if own == _ENDED:
        return True, own
    a, b = heads[one], heads[other]
    same = _shared(offsets, text, a, b, own)
    at, end = offsets[b] + same, offsets[b + 1]
    if offsets[a] + same == offsets[a + 1]:
        return True, same
    return at < end and text[offsets[a] + same] < text[at], same


@kernel
def _merge(offsets, text, starts, losers, shared, numbers, places):
    """``losers`` has a run for each inner node of the tree, -1 at first, and ``shared`` what its head shares."""
    width = len(losers)
    heads = np.zeros(width, np.int64)
    ends = np.zeros(width, np.int64)
    for run in range(len(starts) - 1):
        heads[run], ends[run] = starts[run], starts[run + 1]
    best, same = np.int64(0), np.int64(0)
    for run in range(width):  # each climbs to where nobody was before
        climber, own = np.int64(run), np.int64(0 if heads[run] < ends[run] else _ENDED)
        node = (run + width) >> 1
        while node and losers[node] >= 0:
            first, both = _play(offsets, text, heads, climber, own, losers[node], shared[node])
            if first:
                shared[node] = both
            else:
                climber, losers[node] = losers[node], climber
                own, shared[node] = shared[node], both
            node >>= 1
        if node:
            losers[node], shared[node] = climber, own
        else:
            best, same = climber, own
    n = 0
    while same != _ENDED:
        head = heads[best]
        if n == 0 or same < offsets[head + 1] - offsets[head]:
            places[n] = head
            n += 1
        numbers[head] = n - 1
        heads[best] = head + 1
        climber, own = best, np.int64(_ENDED)
        if head + 1 < ends[best]:
            own = _shared(offsets, text, head, head + 1, np.int64(0))
        node = (best + width) >> 1
        while node:
            first, both = _play(offsets, text, heads, climber, own, losers[node], shared[node])
            if first:
                shared[node] = both
            else:
                climber, losers[node] = losers[node], climber
                own, shared[node] = shared[node], both
            node >>= 1
        best, same = climber, own
    return n
