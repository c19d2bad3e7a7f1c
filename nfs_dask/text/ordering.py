"""Strings in the order of their bytes, which for UTF-8 is the order of their code points.

Strings are sorted by their first eight bytes, read as one big-endian number: numpy sorts those, with vector
instructions where the processor has them, much faster than it would compare texts. Those whose numbers are equal go on
with the next eight bytes, by a quicksort in three parts. The numbers are kept beside the order, so that most
comparisons touch no text. That takes 24 bytes a string.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.arrays.compiling import kernel, kernel_part
from nfs_dask.text.strings import Strings, TermCounts
from nfs_dask.text.text_kernels import load_eight, store_eight

_FEW = 24  # so many are sorted by insertion
_FEW_ENTRIES = 48  # the same for numbers alone
_STACK = 256  # parts that wait; the largest of three waits longest, so that 2 log2(n) of them are enough


def sort_strings(strings: Strings) -> Array:
    """Positions of the strings in ascending order, (n,) int64; a beginning of another comes before it."""
    keys = np.empty(len(strings), np.uint64)
    _first_keys(strings.offsets, strings.text, keys)
    places = np.argsort(keys)
    waiting, parts = np.empty((_STACK, 3), np.int64), np.empty((3, 3), np.int64)
    sort_equal(strings.offsets, strings.text, places, keys[places], waiting, parts)
    return places


def take(strings: Strings, positions: Array) -> Strings:
    """Copies of the strings at some positions, in their order; holds no more than the copies."""
    offsets = np.zeros(len(positions) + 1, np.int64)
    _lengths(strings.offsets, positions, offsets)
    np.cumsum(offsets, out=offsets)
    text = np.empty(int(offsets[-1]) + 8, np.uint8)
    _copy(strings.offsets, strings.text, positions, offsets, text)
    return Strings(offsets, text[:-8])


def find(haystack: Strings, wanted: Strings) -> Array:
    """Where each wanted string is in sorted strings, (n,) int64; -1 where it is not."""
    found = np.empty(len(wanted), np.int64)
    _find(haystack.offsets, haystack.text, wanted.offsets, wanted.text, found)
    return found


def lower_bound(strings: Strings, bound: bytes) -> int:
    """How many of the sorted strings come before a bound."""
    low, high = 0, len(strings)
    while low < high:
        middle = (low + high) // 2
        if strings[middle] < bound:
            low = middle + 1
        else:
            high = middle
    return low


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


@kernel_part
def _key(offsets, text, i, depth):
    """Eight bytes of string i from ``depth`` on as a number that compares as they do; NUL beyond its end."""
    start, stop = offsets[i] + depth, offsets[i + 1]
    key = np.uint64(0)
    if stop - start >= 8:
        for j in range(start, start + 8):
            key = (key << np.uint64(8)) | np.uint64(text[j])
        return key
    for j in range(start, start + 8):
        key <<= np.uint64(8)
        if j < stop:
            key |= np.uint64(text[j])
    return key


@kernel_part
def _less(offsets, text, a, b, depth):
    """Whether string a comes before string b, whose first ``depth`` bytes are the same."""
    i, j = offsets[a] + depth, offsets[b] + depth
    while i < offsets[a + 1] and j < offsets[b + 1]:
        if text[i] != text[j]:
            return text[i] < text[j]
        i += 1
        j += 1
    return i == offsets[a + 1] and j < offsets[b + 1]


@kernel_part
def _insert(offsets, text, places, keys, low, high, depth):
    """Sort a few by insertion, looking at their text where the numbers are equal."""
    for i in range(low + 1, high):
        key, place = keys[i], places[i]
        j = i
        while j > low and (
            key < keys[j - 1] or (key == keys[j - 1] and _less(offsets, text, place, places[j - 1], depth))
        ):
            keys[j], places[j] = keys[j - 1], places[j - 1]
            j -= 1
        keys[j], places[j] = key, place


@kernel_part
def _median(a, b, c):
    return max(min(a, b), min(max(a, b), c))


@kernel_part
def _pivot(keys, low, high):
    """A number near the middle: the median of three medians of three, taken all over the part."""
    step = (high - low) // 9
    return _median(
        _median(keys[low], keys[low + step], keys[low + 2 * step]),
        _median(keys[low + 3 * step], keys[low + 4 * step], keys[low + 5 * step]),
        _median(keys[low + 6 * step], keys[low + 7 * step], keys[high - 1]),
    )


@kernel_part
def _partition(places, keys, low, high, pivot):
    """Put smaller numbers first, equal ones in the middle and larger ones last; where the middle begins and ends."""
    i = low
    while i < high:
        key = keys[i]
        if key < pivot:
            keys[i], keys[low] = keys[low], key
            places[i], places[low] = places[low], places[i]
            low += 1
            i += 1
        elif key > pivot:
            high -= 1
            keys[i], keys[high] = keys[high], key
            places[i], places[high] = places[high], places[i]
        else:
            i += 1
    return low, high


@kernel_part
def _put_ended_first(offsets, places, low, high, depth, key):
    """Of strings with equal numbers, put those that end within the eight bytes first, by length; where the rest begins.

    A string shorter than the others has the number they have only where they go on with NUL.
    """
    for length in range(0 if key & np.uint64(255) == 0 else 8, 9):
        for i in range(low, high):
            if offsets[places[i] + 1] - offsets[places[i]] - depth == length:
                places[i], places[low] = places[low], places[i]
                low += 1
    return low


@kernel
def _first_keys(offsets, text, keys):
    """The first eight bytes of each string as a number."""
    for i in range(len(keys)):
        keys[i] = _key(offsets, text, i, np.int64(0))


@kernel
def sort_equal(offsets, text, places, keys, waiting, parts):
    """Sort ``places`` further where ``keys``, the first numbers, which are in order, are equal; both change.

    ``waiting`` and ``parts`` are room to work in.
    """
    start: Any = np.int64(0)  # for literals numba would compile functions again
    none, eight = np.int64(0), np.int64(8)
    for i in range(1, len(places) + 1):
        if i < len(places) and keys[i] == keys[start]:
            continue
        if i - start > 1:
            rest = _put_ended_first(offsets, places, start, i, none, keys[start])
            for j in range(rest, i):
                keys[j] = _key(offsets, text, places[j], eight)
            _sort_part(offsets, text, places, keys, rest, i, waiting, parts)
        start = i


@kernel_part
def _sort_part(offsets, text, places, keys, first, last, waiting, parts):
    """Sort strings that agree in their first eight bytes, by the next eight."""
    waiting[0, 0], waiting[0, 1], waiting[0, 2] = first, last, 8
    n = 1
    while n:
        n -= 1
        low, high, depth = waiting[n, 0], waiting[n, 1], waiting[n, 2]
        if high - low <= _FEW:
            _insert(offsets, text, places, keys, low, high, depth)
            continue
        pivot = _pivot(keys, low, high)
        start, stop = _partition(places, keys, low, high, pivot)
        rest = _put_ended_first(offsets, places, start, stop, depth, pivot)
        for i in range(rest, stop):
            keys[i] = _key(offsets, text, places[i], depth + 8)
        parts[0, 0], parts[0, 1], parts[0, 2] = low, start, depth
        parts[1, 0], parts[1, 1], parts[1, 2] = rest, stop, depth + 8
        parts[2, 0], parts[2, 1], parts[2, 2] = stop, high, depth
        for _ in range(3):
            most = 0
            for part in range(1, 3):
                if parts[part, 1] - parts[part, 0] > parts[most, 1] - parts[most, 0]:
                    most = part
            if parts[most, 1] - parts[most, 0] > 1:
                waiting[n, 0], waiting[n, 1], waiting[n, 2] = parts[most, 0], parts[most, 1], parts[most, 2]
                n += 1
            parts[most, 1] = parts[most, 0] - 1


@kernel
def _lengths(offsets, positions, out):
    """out[i + 1] = length of the string at positions[i]."""
    for i in range(len(positions)):
        out[i + 1] = offsets[positions[i] + 1] - offsets[positions[i]]


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
    """Where to begin with n numbers; a few are sorted by insertion alone."""
    gap = 1
    if n > _FEW_ENTRIES:
        while gap < n // 3:
            gap = (9 * gap) // 4 + 1
    return gap


@kernel_part
def _next_gap(gap):
    """The gap before one of 1, 3, 7, 16, 37 and so on; 0 after the last."""
    return 0 if gap == 1 else (4 * gap - 1) // 9


@kernel
def _sort_rows(indptr, ids, counts, room):
    """Entries are packed into numbers, with the id in their upper half, and sorted in ``room``.

    By insertion over ever narrower gaps: as fast for rows of texts as numba's quicksort, which takes most of a second
    to compile.
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
            gap = _next_gap(gap)
        for i in range(n):
            ids[start + i] = room[i] >> np.uint64(32)
            counts[start + i] = room[i] & np.uint64(0xFFFFFFFF)
