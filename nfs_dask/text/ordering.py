"""Strings in the order of their bytes, which for UTF-8 is the order of their code points; and rows in that of ids.

Strings are sorted by their first eight bytes, read as one big-endian number: numpy sorts those, with vector
instructions where the processor has them, much faster than it would compare texts. Those whose numbers are equal go on
with the next eight bytes, and the few that are left are compared by Python.
"""

from __future__ import annotations

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.arrays.compiling import kernel, kernel_part
from nfs_dask.text.strings import Strings, TermCounts
from nfs_dask.text.text_kernels import load_eight, store_eight

EIGHT = 8  # bytes compared at a time
DEEPEST = 256  # bytes that are compared so
FEW = 64  # strings that Python sorts at once
_FEW_ENTRIES = 48  # numbers that are sorted by insertion alone


def sort_strings(strings: Strings) -> Array:
    """Positions of the strings in ascending order, (n,) int64; a beginning of another comes before it."""
    keys = _keys(strings, np.arange(len(strings)), 0)
    places = np.argsort(keys)
    keys, depth = keys[places], 0
    at, group = _equal_neighbours(np.arange(len(keys)), keys[1:] == keys[:-1])
    while len(at):
        # Of equal keys, those of strings that end within them come first, by their lengths: they are filled with NUL.
        ended = np.minimum(np.diff(strings.offsets)[places[at]] - depth, EIGHT)
        depth += EIGHT
        if len(at) <= FEW or depth > DEEPEST:
            rest = places[at].tolist()
            places[at] = [rest[i] for i in sorted(range(len(at)), key=lambda i: (group[i], strings[rest[i]]))]
            break
        keys = _keys(strings, places[at], depth)
        own = np.lexsort((keys, ended, group))
        places[at] = places[at[own]]
        keys, ended = keys[own], ended[own]
        same = (keys[1:] == keys[:-1]) & (group[1:] == group[:-1]) & (ended[1:] == EIGHT) & (ended[:-1] == EIGHT)
        at, group = _equal_neighbours(at, same)
    return places


def _keys(strings: Strings, positions: Array, depth: int) -> Array:
    keys = np.empty(len(positions), np.uint64)
    _fill_keys(strings.offsets, strings.text, positions, depth, keys)
    return keys


def _equal_neighbours(at: Array, same: Array) -> tuple[Array, Array]:
    """The places that are the same as a neighbour, ascending, and a number for each group of such."""
    beside = np.zeros(len(at) + 1, bool)
    beside[1:-1] = same
    some = beside[1:] | beside[:-1]
    return at[some], np.cumsum(~beside[:-1])[some]


def take(strings: Strings, positions: Array) -> Strings:
    """Copies of the strings at some positions, in their order; holds no more than the copies."""
    offsets = np.zeros(len(positions) + 1, np.int64)
    np.cumsum(np.diff(strings.offsets)[positions], out=offsets[1:])
    text = np.empty(int(offsets[-1]) + EIGHT, np.uint8)
    _copy(strings.offsets, strings.text, positions, offsets, text)
    return Strings(offsets, text[:-EIGHT])


def find(haystack: Strings, wanted: Strings) -> Array:
    """Where each wanted string is in sorted strings, (n,) int64; -1 where it is not."""
    found = np.empty(len(wanted), np.int64)
    _find(haystack.offsets, haystack.text, wanted.offsets, wanted.text, found)
    return found


def order(counted: TermCounts) -> TermCounts:
    """The same counts with terms in ascending order, and so the ids within each row."""
    places = sort_strings(counted.terms)
    ranks = np.empty(len(places), np.int32)
    ranks[places] = np.arange(len(places), dtype=np.int32)
    ids, counts = ranks[counted.ids], counted.counts.copy()
    sort_rows(counted.indptr, ids, counts)
    return TermCounts(take(counted.terms, places), counted.indptr, ids, counts, counted.collisions)


def sort_rows(indptr: Array, ids: Array, counts: Array) -> None:
    """Sort the entries of each row by id, in place. Ids and counts are int32 of zero or more."""
    _sort_rows(indptr, ids, counts, np.empty(int(np.diff(indptr).max(initial=0)), np.uint64))


@kernel
def _fill_keys(offsets, text, positions, depth, keys):
    """Eight bytes of each string from ``depth`` on as a number that compares as they do; NUL beyond its end."""
    for i in range(len(positions)):
        start, stop = offsets[positions[i]] + depth, offsets[positions[i] + 1]
        key = np.uint64(0)
        for j in range(start, start + 8):
            key <<= np.uint64(8)
            if j < stop:
                key |= np.uint64(text[j])
        keys[i] = key


@kernel
def _copy(offsets, text, positions, out_offsets, out):
    """Copy the string at each position to its place, eight bytes at a time.

    What goes beyond the end of a string is overwritten by the next one, and ``out`` has room for eight more bytes.
    """
    for i in range(len(positions)):
        start, to = offsets[positions[i]], out_offsets[i]
        n = out_offsets[i + 1] - to
        if start + n + 8 <= len(text):
            for j in range(0, n, 8):
                store_eight(load_eight(text, start + j), out, to + j)
        else:
            for j in range(n):
                out[to + j] = text[start + j]


@kernel
def _find(offsets, text, wanted_offsets, wanted_text, found):
    """Binary search for each wanted string."""
    for i in range(len(found)):
        start, stop = wanted_offsets[i], wanted_offsets[i + 1]
        low, high = np.int64(0), np.int64(len(offsets) - 1)
        found[i] = -1
        while low < high:
            middle = (low + high) >> 1
            a, b = offsets[middle], start
            while a < offsets[middle + 1] and b < stop and text[a] == wanted_text[b]:
                a += 1
                b += 1
            ended = a == offsets[middle + 1]
            if ended and b == stop:
                found[i] = middle
                break
            if ended or (b < stop and text[a] < wanted_text[b]):
                low = middle + 1
            else:
                high = middle


@kernel_part
def _widest_gap(n):
    """A gap to begin with for n numbers; a few are sorted by insertion alone."""
    gap = 1
    if n > _FEW_ENTRIES:
        while gap < n // 3:
            gap = (9 * gap) // 4 + 1
    return gap


@kernel
def _sort_rows(indptr, ids, counts, room):
    """Entries are packed into numbers, with the id in their upper half, and sorted in ``room``.

    By insertion over gaps of .. 37, 16, 7, 3, 1: as fast for rows of texts as numba's quicksort, which takes most of a
    second to compile.
    """
    for row in range(len(indptr) - 1):
        start, n = indptr[row], indptr[row + 1] - indptr[row]
        in_order = True
        for i in range(n):
            one = (np.uint64(ids[start + i]) << np.uint64(32)) | np.uint64(counts[start + i])
            room[i] = one
            in_order &= i == 0 or room[i - 1] < one
        if in_order:
            continue
        gap = _widest_gap(n)
        while gap:
            for i in range(gap, n):
                one, j = room[i], i
                while j >= gap and room[j - gap] > one:
                    room[j] = room[j - gap]
                    j -= gap
                room[j] = one
            gap = 0 if gap == 1 else (4 * gap - 1) // 9
        for i in range(n):
            ids[start + i] = room[i] >> np.uint64(32)
            counts[start + i] = room[i] & np.uint64(0xFFFFFFFF)
