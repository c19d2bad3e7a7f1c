"""The loops of `nfs_dask.statistics.leave_one_out` over the entries of documents, whose columns ascend."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.arrays.compiling import kernel, kernel_part

SHORT = 64  # entries of rows in which words are looked for that several regions have; longer ones are merged at once
SLOTS = 1 << 12  # by which they are: most words of a short row have one to themselves


@kernel
def split_regions(
    indptr: Array, indices: Array, data: Array, n_words: int, places: Array, lengths: Array, shared: Array
) -> bool:
    """Find where the entries of each region begin, and add up their values; False where columns do not ascend.

    places[row, region] = the first entry that is not before the region; lengths[row, region] = the sum of its values,
    in their type. Unless ``shared`` is empty, the entries whose word a row has in several regions are marked there.
    """
    ascend, looks = True, len(shared) > 0
    n_regions, zero, one = np.uint64(places.shape[1]), np.uint64(0), np.uint64(1)  # see `gather_numbers`
    nothing, slots = lengths.dtype.type(0), np.full(SLOTS, -1, np.int64)
    for i in range(np.uint64(len(indptr) - 1)):
        begin, stop = np.uint64(indptr[i]), np.uint64(indptr[i + one])
        short = stop - begin <= np.uint64(SHORT)
        merged = looks and not short
        region, start, end, last, length = zero, np.int64(0), np.int64(n_words), np.int64(-1), nothing
        places[i, zero] = begin
        for j in range(begin, stop):
            column = np.int64(indices[j])
            if column <= last:
                ascend = False
            last = column
            while column >= end:
                lengths[i, region], length = length, nothing
                region, start, end = region + one, end, end + n_words
                places[i, region] = j
            length += data[j]
            if looks and short:
                slot = np.uint64(column - start) & np.uint64(SLOTS - 1)
                other = slots[slot]  # an entry of this row, or of one before
                if other < np.int64(begin):
                    slots[slot] = j
                elif (column - np.int64(indices[other])) % n_words == 0:
                    shared[other], shared[j] = 1, 1
                else:
                    merged = True
        lengths[i, region] = length
        for r in range(region + one, n_regions):
            places[i, r], lengths[i, r] = stop, nothing
        if merged:
            _mark_shared(indices, np.int64(stop), np.int64(i), n_words, places, shared)
    return ascend


@kernel_part
def _mark_shared(indices: Any, stop: int, i: int, n_words: int, places: Any, shared: Any) -> None:
    """Mark the entries whose word a row has in several regions, by walking two of them at a time."""
    n_regions = places.shape[1]
    for r in range(n_regions - 1):
        for q in range(r + 1, n_regions):
            j, k = places[i, r], places[i, q]
            j_end, k_end = places[i, r + 1], places[i, q + 1] if q + 1 < n_regions else stop
            apart = np.int64(q - r) * n_words
            while j < j_end and k < k_end:  # both ascend; the steps of the one and the other have no branch
                here, there = np.int64(indices[j]), np.int64(indices[k]) - apart
                if here == there:
                    shared[j], shared[k] = 1, 1
                j += np.int64(here <= there)
                k += np.int64(there <= here)


@numba.njit(nogil=True, inline="always")
def _reach(indices: Array, low: Any, high: Any, column: Any) -> Any:
    """The first of the ascending entries ``low .. high - 1`` that is not before a column."""
    while low < high:
        middle = (low + high) >> 1
        if np.int64(indices[middle]) < column:
            low = middle + 1
        else:
            high = middle
    return low


@numba.njit(nogil=True)
def _in_regions(
    indices: Any, data: Any, low: Any, high: Any, word: Any, n_words: Any, first: Any, last: Any, nothing: Any
) -> Any:
    """Count the occurrences of a word in regions ``first .. last - 1`` of a row."""
    own = nothing
    for q in range(first, last):
        column = q * n_words + word
        low = _reach(indices, low, high, column)
        if low < high and np.int64(indices[low]) == column:
            own += data[low]
    return own


@kernel
def add_logs(
    indptr: Array,
    indices: Array,
    data: Array,
    codes: Array,
    removed: Array,
    shared: Array,
    n_words: int,
    first: int,
    counts: Array,
    smoothing: float,
    few: Array,
    residue: float,
    nothing: Any,
    places: Array,
    logs: Array,
) -> None:
    """logs[row, region, class] += value * log(count + smoothing) of each entry, without the row's own counts.

    A row's own count of a word is what the regions that share the table have of it; ``shared`` marks the entries where
    that is more than one, if there are any. ``places`` say how far each region has been walked by earlier panels, and
    then by this one. ``few`` are the smoothed logarithms of 0, 1, 2, ... Below a ``residue`` of a count, what is left
    of it is 0. ``nothing`` is a zero of the type that values add up in.
    """
    n_tables, width, n_classes = counts.shape
    n_regions, n_few = logs.shape[1], len(few)
    together = n_regions // n_tables
    tables, looks = np.arange(n_regions) // together, len(shared) > 0
    for i in range(len(indptr) - 1):
        end, share = np.int64(indptr[i + 1]), removed[i]
        own_class = np.int64(codes[i]) if share > 0 else np.int64(-1)
        for r in range(n_regions):
            t, start = tables[r], np.int64(r) * n_words
            limit = start + min(first + width, n_words)
            j = places[i, r]
            while j < end:
                column = np.int64(indices[j])
                if column >= limit:
                    break
                word = column - start
                if word >= first:
                    own = nothing + data[j]
                    if looks and own_class >= 0 and shared[j]:
                        regions = t * together, (t + 1) * together
                        own = _in_regions(indices, data, np.int64(indptr[i]), end, word, n_words, *regions, nothing)
                    value = np.float64(data[j])
                    for c in range(n_classes):
                        count = nothing + counts[t, word - first, c]
                        if c == own_class and share != 1.0:
                            part = np.float64(count) - share * own
                            part = part if part > residue * count else 0.0
                            whole = np.int64(part)
                            is_few = 0 <= whole < n_few and whole == part
                            log = few[whole] if is_few else np.log(part + smoothing)
                        else:  # whole numbers are subtracted as such
                            left = count - (own if c == own_class else nothing)
                            left = left if left > residue * count else nothing
                            whole = np.int64(left)
                            is_few = 0 <= whole < n_few and whole == left
                            log = few[whole] if is_few else np.log(left + smoothing)
                        logs[i, r, c] += value * log
                j += 1
            places[i, r] = j


@kernel
def gather_numbers(
    indptr: Array,
    indices: Array,
    n_words: int,
    first: int,
    numbers: Array,
    places: Array,
    ends: Array,
    gathered: Array,
) -> None:
    """The number (tables, words) of each entry among words ``first ..``, and where those of each region end.

    ``places`` move on to where they begin. The loop does nothing else, so that many numbers are on their way from
    memory at a time. Positions are unsigned: of others the compiler asks each time whether they count from the end.
    """
    n_regions, width, one = np.uint64(places.shape[1]), numbers.shape[1], np.uint64(1)
    together = n_regions // np.uint64(len(numbers))
    for i in range(np.uint64(len(indptr) - 1)):
        end = np.uint64(indptr[i + one])
        for r in range(n_regions):
            t, region = r // together, r * np.uint64(n_words)
            begin, limit = region + np.uint64(first), region + np.uint64(min(first + width, n_words))
            j = np.uint64(places[i, r])
            while j < end and np.uint64(indices[j]) < begin:
                j += one
            places[i, r] = j
            while j < end:
                column = np.uint64(indices[j])
                if column >= limit:
                    break
                gathered[j] = numbers[t, column - begin]
                j += one
            ends[i, r] = j


@kernel
def add_pair_logs(
    indptr: Array,
    indices: Array,
    data: Array,
    codes: Array,
    removed: Array,
    shared: Array,
    n_words: int,
    n_tables: int,
    gathered: Array,
    pairs: Array,
    smoothing: float,
    few: Array,
    places: Array,
    ends: Array,
    logs: Array,
) -> None:
    """As `add_logs`, to the bit, for whole numbers in two classes, where documents leave the table whole or not.

    What words have are ``pairs`` of counts by numbers that were ``gathered`` for each entry.
    """
    n_regions, n_few, nothing = np.uint64(logs.shape[1]), np.int64(len(few)), np.int64(0)
    together, zero, one = n_regions // np.uint64(n_tables), np.uint64(0), np.uint64(1)
    looks = len(shared) > 0
    for i in range(np.uint64(len(codes))):
        leaves = removed[i] > 0
        is_first, is_second = np.int64(leaves and codes[i] == 0), np.int64(leaves and codes[i] == 1)
        for r in range(n_regions):
            log_first, log_second = logs[i, r, zero], logs[i, r, one]
            for j in range(np.uint64(places[i, r]), np.uint64(ends[i, r])):
                own = np.int64(data[j])
                value = np.float64(own)
                if looks and leaves and shared[j]:
                    regions = np.int64(r // together * together), np.int64((r // together + one) * together)
                    row = np.int64(indptr[i]), np.int64(indptr[i + one])
                    word = np.int64(indices[j]) - np.int64(r) * n_words
                    own = _in_regions(indices, data, *row, word, n_words, *regions, nothing)
                pair = np.uint64(gathered[j])
                left = max(pairs[pair, zero] - own * is_first, nothing)
                log_first += value * (few[np.uint64(left)] if left < n_few else np.log(left + smoothing))
                left = max(pairs[pair, one] - own * is_second, nothing)
                log_second += value * (few[np.uint64(left)] if left < n_few else np.log(left + smoothing))
            logs[i, r, zero], logs[i, r, one] = log_first, log_second


@kernel
def finish(
    logs: Array,
    tokens: Array,
    codes: Array,
    removed: Array,
    lengths: Array,
    totals: Array,
    residue: float,
    mass: float,
    normalize: bool,
    features: Array,
) -> None:
    """Write (logs - tokens * log(total + mass)) / tokens to features; a row's own length leaves the total."""
    n, n_regions, n_classes = logs.shape
    together = n_regions // totals.shape[1]
    worth = np.empty((totals.shape[1], n_classes))
    for t in range(totals.shape[1]):
        for c in range(n_classes):
            worth[t, c] = np.log(totals[c, t] + mass)
    left_out = np.zeros(totals.shape[1])
    for i in range(n):
        own_class = np.int64(codes[i]) if removed[i] > 0 else np.int64(-1)
        if own_class >= 0:
            for t in range(totals.shape[1]):
                share, total = removed[i], np.float64(totals[own_class, t])
                exact = np.float64(totals[own_class, t] - lengths[i, t])
                left = exact if share == 1.0 else total - share * lengths[i, t]
                left_out[t] = np.log((left if left > residue * total else 0.0) + mass)
        for r in range(n_regions):
            t = r // together
            by = tokens[i, r] if normalize and tokens[i, r] > 0 else 1.0
            for c in range(n_classes):
                log = left_out[t] if c == own_class else worth[t, c]
                features[i, r, c] = (logs[i, r, c] - tokens[i, r] * log) / by
