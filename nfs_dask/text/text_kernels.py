"""From UTF-8 to counted terms, compiled by numba, without the interpreter's lock.

Texts go through four steps, each a kernel over a batch that fits the cache of a core:

1. *fold*: lower-case, without accents (`fold_texts`);
2. *split*: into tokens that are one space apart (`split_words`, `take_tokens`), with stems in their place where
   asked for (`find_words`, `put_words`); or with white space made one (`join_spaces`);
3. *slice*: which stretches of that are terms, with the hash of each (`slice_words`, `slice_characters`);
4. *count*: look each slice up in one open-addressing table, and add it to its row (`count_slices`).

Kernels index without bounds checks. `TermCounter` looks at what comes from outside; room for what they write is made
before, or they say how far they came.

All of them are in one file, since the cache of compiled code goes by the file of a kernel alone.

The hash of a term is a polynomial in one odd base, modulo 2**64, over its bytes (each plus one) and a space at its end,
and a finaliser that mixes the bits. So it depends on the bytes alone, and that of any slice follows from the running
hash at its two ends: H(slice) = P(end) - P(start) * BASE**length. No key is in it, so whoever tries can write terms of
one hash; they are told apart by their bytes, at the price of time.
"""

from __future__ import annotations

import sys
from typing import Any

import numba
import numpy as np
from numba.core import types
from numba.extending import intrinsic

from nfs_dask.arrays.compiling import kernel, kernel_part

BASE = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xFF51AFD7ED558CCD)
MIX_2 = np.uint64(0xC4CEB9FE1A85EC53)
HALF = np.uint64(32)
LOW = np.uint64(0xFFFFFFFF)
ONE = np.uint64(1)
HIGH_BITS = np.uint64(0x8080808080808080)  # of eight bytes: none is set where all are ASCII
TO_A = np.uint64(0x3F3F3F3F3F3F3F3F)  # from A to the highest bit, for each of eight bytes
BEYOND_Z = np.uint64(0x2525252525252525)
SPACE = np.uint8(32)
LITTLE = sys.byteorder == "little"
SPARE = 8  # bytes after a text that is read eight at a time

DONE = 0
NO_ROOM = 1
CONTEXT = 2  # a text that only Python can fold

AHEAD = 16  # slices whose slots are fetched together
ROW_END = -1  # as the start of a slice: the row is complete


def _load_eight(typing_context, text, p):  # noqa: ARG001 - numba hands it in
    """Bytes ``p .. p + 7`` of a text as one number, wherever they lie: for comparing names eight bytes at a time."""

    def load(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        place = builder.gep(data, [arguments[1]])
        return builder.load(builder.bitcast(place, context.get_value_type(types.uint64).as_pointer()), align=1)

    return types.uint64(text, p), load


load_eight: Any = intrinsic(_load_eight)


def _store_eight(typing_context, value, out, p):  # noqa: ARG001 - numba hands it in
    """Write a number to bytes ``p .. p + 7``, as `load_eight` reads it."""

    def store(context, builder, signature, arguments):
        data = context.make_array(signature.args[1])(context, builder, arguments[1]).data
        place = builder.bitcast(builder.gep(data, [arguments[2]]), context.get_value_type(types.uint64).as_pointer())
        builder.store(arguments[0], place, align=1)
        return context.get_dummy_value()

    return types.void(types.uint64, out, p), store


store_eight: Any = intrinsic(_store_eight)


@kernel_part
def _lower_eight(eight):
    """Eight ASCII characters in lower case: those from A to Z get the bit that tells a letter from its capital."""
    from_a, beyond_z = eight + TO_A, eight + BEYOND_Z  # with the highest bit of each byte where that is so
    return eight | (((from_a & ~beyond_z) & HIGH_BITS) >> np.uint64(2))


@kernel_part
def _decode(text, p):
    """The code point at a position of valid UTF-8, and its bytes."""
    first = np.int64(text[p])
    if first < 0x80:
        return first, 1
    if first < 0xE0:
        return ((first & 0x1F) << 6) | (text[p + 1] & 0x3F), 2
    if first < 0xF0:
        return ((first & 0x0F) << 12) | ((text[p + 1] & 0x3F) << 6) | (text[p + 2] & 0x3F), 3
    high = ((first & 0x07) << 18) | ((text[p + 1] & 0x3F) << 12)
    return high | ((text[p + 2] & 0x3F) << 6) | (text[p + 3] & 0x3F), 4


@numba.njit(nogil=True, inline="always")
def _encode(code, out, p):
    """Write a code point; the position after it."""
    if code < 0x80:
        out[p] = code
        return p + 1
    if code < 0x800:
        out[p] = 0xC0 | (code >> 6)
        out[p + 1] = 0x80 | (code & 0x3F)
        return p + 2
    if code < 0x10000:
        out[p] = 0xE0 | (code >> 12)
        out[p + 1] = 0x80 | ((code >> 6) & 0x3F)
        out[p + 2] = 0x80 | (code & 0x3F)
        return p + 3
    out[p] = 0xF0 | (code >> 18)
    out[p + 1] = 0x80 | ((code >> 12) & 0x3F)
    out[p + 2] = 0x80 | ((code >> 6) & 0x3F)
    out[p + 3] = 0x80 | (code & 0x3F)
    return p + 4


@kernel
def fold_texts(text, offsets, first, lowercase, codes, piece_offsets, pieces, widest, out, out_offsets):
    """Folded texts one after another, from text ``first`` on; the text it stopped before, and why.

    ASCII is folded eight bytes at a time, whatever stands beside it.
    """
    p = out_offsets[first]
    for i in range(first, len(offsets) - 1):
        q, stop = offsets[i], offsets[i + 1]
        while q < stop:
            if q + 8 <= stop and p + 8 <= len(out):
                eight = load_eight(text, q)
                if eight & HIGH_BITS == 0:
                    store_eight(_lower_eight(eight) if lowercase else eight, out, p)
                    p += 8
                    q += 8
                    continue
            if text[q] < 0x80 and p < len(out):
                out[p] = codes[text[q]]
                p += 1
                q += 1
                continue
            if p + widest > len(out):
                return i, NO_ROOM
            code, width = _decode(text, q)
            code = np.int64(codes[code])
            q += width
            if 0 <= code < 0x110000:
                p = _encode(code, out, p)
            elif code >= 0:
                return i, CONTEXT
            else:
                for r in range(piece_offsets[-1 - code], piece_offsets[-code]):
                    out[p] = pieces[r]
                    p += 1
        out_offsets[i + 1] = p
    return len(offsets) - 1, DONE


# Hashes


@kernel_part
def _push(running, byte):
    return running * BASE + (np.uint64(byte) + ONE)


@kernel_part
def _power(powers, length):
    """``BASE**length``, from a table of the small ones."""
    if length < len(powers):
        return powers[length]
    result = ONE
    square = BASE
    while length:
        if length & 1:
            result *= square
        square *= square
        length >>= 1
    return result


@kernel_part
def _mix(h):
    """Murmur3's finaliser: every bit of the outcome depends on all bits, and no two outcomes are equal."""
    h ^= h >> np.uint64(33)
    h *= MIX_1
    h ^= h >> np.uint64(33)
    h *= MIX_2
    return h ^ (h >> np.uint64(33))


@kernel
def fill_powers(powers):
    """powers[i] = BASE**i."""
    power = ONE
    for i in range(len(powers)):
        powers[i] = power
        power *= BASE


@kernel
def hash_texts(text, offsets, hashes):
    """The hash of each string, as a term."""
    for i in range(len(hashes)):
        h = np.uint64(0)
        for p in range(offsets[i], offsets[i + 1]):
            h = _push(h, text[p])
        hashes[i] = _mix(_push(h, SPACE))


# The table of terms: a slot has the upper half of a hash and, below it, the number of its term plus one, or 0 if free.


def n_slots(n_terms: int) -> int:
    """A power of two that leaves a third of the slots free, and up to two thirds."""
    return 1 << (3 * n_terms // 2).bit_length()


@kernel
def offsets_of_bytes(text, offsets):
    """From where texts begin and end in characters to where they do in bytes, in place; the text is valid UTF-8."""
    at, before = 0, 0
    for i in range(1, len(offsets)):
        missing = offsets[i] - before
        before = offsets[i]
        while missing:
            if missing >= 8 and at + 8 <= len(text) and load_eight(text, at) & HIGH_BITS == 0:
                at += 8
                missing -= 8
            else:
                first = text[at]
                at += 1 + (first >= 0xC0) + (first >= 0xE0) + (first >= 0xF0)
                missing -= 1
        offsets[i] = at


# Inlined by numba itself: a call would pass every array as seven numbers, and cost more than what it does. They return
# from within their loops, since a `break` leaves numba counting references to the arrays, which is three times slower.


@numba.njit(nogil=True, inline="always")
def _same(a, start, b, other, length):
    """Whether two stretches of as many bytes are equal."""
    while length > 8:
        if load_eight(a, start) != load_eight(b, other):
            return False
        start += 8
        other += 8
        length -= 8
    differ = load_eight(a, start) ^ load_eight(b, other)
    beyond = np.uint64(64 - 8 * length)
    return length == 0 or (differ << beyond if LITTLE else differ >> beyond) == 0


@numba.njit(nogil=True, inline="always")
def _find(slots, hashes, offsets, names, h, text, start, stop):
    """The number of a term or -1, the slot where it is or would be, and how many others had its hash on the way."""
    mask = np.int64(len(slots) - 1)
    slot = np.int64(h) & mask
    tag = h >> HALF
    length = stop - start
    others = 0
    while True:
        found = slots[slot]
        if found == 0:
            return np.int64(-1), slot, others
        if found >> HALF == tag:
            term = np.int64(found & LOW) - 1
            name = offsets[term]
            if offsets[term + 1] - name == length and _same(names, name, text, start, length):
                return term, slot, others
            others += hashes[term] == h
        slot = (slot + 1) & mask


@numba.njit(nogil=True, inline="always")
def _add(slots, hashes, offsets, names, h, slot, term, text, start, stop):
    """Put a new term into the slot that `_find` found; the number of terms then."""
    slots[slot] = (h & ~LOW) | np.uint64(term + 1)
    hashes[term] = h
    name = offsets[term]
    for k in range(stop - start):
        names[name + k] = text[start + k]
    offsets[term + 1] = name + stop - start
    return term + 1


@kernel
def fill_slots(slots, hashes, first, n):
    """Put terms ``first .. n - 1`` into a table that has those before them."""
    mask = np.int64(len(slots) - 1)
    for term in range(first, n):
        h = hashes[term]
        slot = np.int64(h) & mask
        while slots[slot]:
            slot = (slot + 1) & mask
        slots[slot] = (h & ~LOW) | np.uint64(term + 1)


@kernel
def count_slices(
    text, starts, stops, keys, n, slots, hashes, offsets, names, places, indptr, ids, counts, state, fixed
):
    """Count the first ``n`` slices; there is room for all of them.

    ``places[term]`` is where its last entry is: in this row, if that is at or after the row's start. ``state`` holds
    the numbers of terms, entries, rows and collisions. ``fixed``: terms not in the table are left out. What is returned
    means nothing: it keeps the compiler from dropping reads.
    """
    n_terms, n_entries, n_rows, collisions = state[0], state[1], state[2], state[3]
    row_start = indptr[n_rows]
    mask = np.int64(len(slots) - 1)
    touched = np.uint64(0)
    for first in range(0, n, AHEAD):
        # Slots lie far apart in memory. Those of the next few slices are fetched together, while these are counted.
        for j in range(min(first + AHEAD, n), min(first + 2 * AHEAD, n)):
            touched |= slots[np.int64(keys[j]) & mask]
        for j in range(first, min(first + AHEAD, n)):
            start, stop = starts[j], stops[j]
            if start == ROW_END:
                n_rows += 1
                indptr[n_rows] = n_entries
                row_start = n_entries
            else:
                term, slot, others = _find(slots, hashes, offsets, names, keys[j], text, start, stop)
                if term < 0 and not fixed:
                    collisions += others > 0
                    term = n_terms
                    n_terms = _add(slots, hashes, offsets, names, keys[j], slot, term, text, start, stop)
                    places[term] = -1
                if term >= 0:
                    place = places[term]
                    if place >= row_start:
                        counts[place] += 1
                    else:
                        places[term] = n_entries
                        ids[n_entries] = term
                        counts[n_entries] = 1
                        n_entries += 1
    state[0], state[1], state[2], state[3] = n_terms, n_entries, n_rows, collisions
    return touched


@kernel
def number_slices(text, starts, stops, keys, n, slots, hashes, offsets, names, indptr, ids, state):
    """The number of the term of each of the first ``n`` slices, in order; there is room for all of them.

    ``state`` holds the numbers of terms, of slices so far, of rows and of collisions. What is returned means nothing.
    """
    n_terms, n_slices, n_rows, collisions = state[0], state[1], state[2], state[3]
    mask = np.int64(len(slots) - 1)
    touched = np.uint64(0)
    for first in range(0, n, AHEAD):
        for j in range(min(first + AHEAD, n), min(first + 2 * AHEAD, n)):
            touched |= slots[np.int64(keys[j]) & mask]
        for j in range(first, min(first + AHEAD, n)):
            start, stop = starts[j], stops[j]
            if start == ROW_END:
                n_rows += 1
                indptr[n_rows] = n_slices
            else:
                term, slot, others = _find(slots, hashes, offsets, names, keys[j], text, start, stop)
                if term < 0:
                    collisions += others > 0
                    term = n_terms
                    n_terms = _add(slots, hashes, offsets, names, keys[j], slot, term, text, start, stop)
                ids[n_slices] = term
                n_slices += 1
    state[0], state[1], state[2], state[3] = n_terms, n_slices, n_rows, collisions
    return touched


# Splitting


@kernel
def split_words(text, offsets, kinds, kind, shortest, out, starts, running, rows):
    """Runs of at least ``shortest`` characters of a kind, a space after each, and one before the first.

    Token j of the batch is ``out[starts[j] : starts[j + 1] - 1]``; ``running[j]`` is the running hash where it starts;
    those of row i are ``rows[i] .. rows[i + 1] - 1``. ``out`` has room for the texts, a byte for each, and one more.
    False if there are more tokens than ``starts`` has room for.
    """
    out[0] = SPACE
    p = np.int64(1)
    h = np.uint64(0)
    n = 0
    starts[0], running[0], rows[0] = p, h, 0
    for i in range(len(offsets) - 1):
        q, end = offsets[i], offsets[i + 1]
        while q < end:
            begin, before, length = p, h, 0
            while q < end:
                code, width = np.int64(text[q]), 1
                if code >= 0x80:
                    code, width = _decode(text, q)
                if not kinds[code] & kind:
                    q += width
                    break
                for _ in range(width):
                    out[p] = text[q]
                    h = _push(h, text[q])
                    p += 1
                    q += 1
                length += 1
            if length < shortest:
                p, h = begin, before
                continue
            if n + 2 > len(starts):
                return False
            out[p] = SPACE
            p += 1
            h = _push(h, SPACE)
            n += 1
            starts[n], running[n] = p, h
        rows[i + 1] = n
    return True


@kernel
def take_tokens(text, offsets, sizes, out, starts, running, rows):
    """As `split_words`, of tokens that are strings already, ``sizes[i]`` of them in row i."""
    out[0] = SPACE
    p = np.int64(1)
    h = np.uint64(0)
    n = 0
    starts[0], running[0], rows[0] = p, h, 0
    for i in range(len(sizes)):
        for _ in range(sizes[i]):
            for q in range(offsets[n], offsets[n + 1]):
                out[p] = text[q]
                h = _push(h, text[q])
                p += 1
            out[p] = SPACE
            p += 1
            h = _push(h, SPACE)
            n += 1
            starts[n], running[n] = p, h
        rows[i + 1] = n


@kernel
def drop_words(slots, hashes, offsets, names, powers, out, starts, running, rows):
    """Leave out the tokens that are in a table. Those kept move up in place: nothing is overtaken."""
    p = np.int64(1)
    h = np.uint64(0)
    n, first = 0, 0
    for i in range(len(rows) - 1):
        last = rows[i + 1]
        for j in range(first, last):
            start, stop = starts[j], starts[j + 1]
            key = _mix(running[j + 1] - running[j] * _power(powers, stop - start))
            if _find(slots, hashes, offsets, names, key, out, start, stop - 1)[0] < 0:
                for q in range(start, stop):
                    out[p] = out[q]
                    h = _push(h, out[q])
                    p += 1
                n += 1
                starts[n], running[n] = p, h
        first = last
        rows[i + 1] = n


@kernel
def find_words(slots, hashes, offsets, names, powers, text, starts, running, n, found):
    """Which of the ``n`` entries of a table each token is; those that are none are added. How many there are then."""
    for j in range(len(found)):
        start, stop = starts[j], starts[j + 1]
        key = _mix(running[j + 1] - running[j] * _power(powers, stop - start))
        word, slot, _ = _find(slots, hashes, offsets, names, key, text, start, stop - 1)
        if word < 0:
            word = np.int64(n)
            n = _add(slots, hashes, offsets, names, key, slot, n, text, start, stop - 1)
        found[j] = word
    return n


@kernel
def put_words(chosen, offsets, names, out, starts, running):
    """Write entries of a table as tokens, as `split_words` does."""
    out[0] = SPACE
    p = np.int64(1)
    h = np.uint64(0)
    starts[0], running[0] = p, h
    for j in range(len(chosen)):
        for q in range(offsets[chosen[j]], offsets[chosen[j] + 1]):
            out[p] = names[q]
            h = _push(h, names[q])
            p += 1
        out[p] = SPACE
        p += 1
        h = _push(h, SPACE)
        starts[j + 1], running[j + 1] = p, h


@kernel
def join_spaces(text, offsets, kinds, solid, out, out_offsets):
    """One space in place of each run of two or more characters of white space."""
    p = 0
    out_offsets[0] = p
    for i in range(len(offsets) - 1):
        q, end = offsets[i], offsets[i + 1]
        while q < end:
            code, width = _decode(text, q)
            run = 0
            begin = q
            while not kinds[code] & solid:
                run += 1
                q += width
                if q == end:
                    break
                code, width = _decode(text, q)
            if run > 1:
                out[p] = SPACE
                p += 1
                continue
            if run == 0:
                q += width
            for r in range(begin, q):
                out[p] = text[r]
                p += 1
        out_offsets[i + 1] = p


# Slicing. ``cursor`` is where to go on: the row, the n of its n-grams, and what a kernel adds; last, the bytes of the
# slices it filled. 0 slices: no row is left.


@kernel
def slice_words(starts, running, rows, lowest, highest, powers, shift, cursor, slice_starts, slice_stops, keys):
    """Fill slices with the n-grams of tokens, row by row, the short ones first; how many."""
    row, n, i = cursor[0], cursor[1], cursor[2]
    filled, nbytes = 0, 0
    while row < len(rows) - 1 and filled < len(keys):
        first, size = rows[row], rows[row + 1] - rows[row]
        if n > min(highest, size):
            slice_starts[filled] = ROW_END
            filled += 1
            row += 1
            n, i = lowest, 0
            continue
        for j in range(first + i, first + min(size - n + 1, i + len(keys) - filled)):
            start, stop = starts[j], starts[j + n]
            slice_starts[filled] = start
            slice_stops[filled] = stop - 1
            keys[filled] = _mix(running[j + n] - running[j] * _power(powers, stop - start)) >> shift
            nbytes += stop - 1 - start
            filled += 1
            i += 1
        if i == size - n + 1:
            n, i = n + 1, 0
    cursor[0], cursor[1], cursor[2], cursor[-1] = row, n, i, nbytes
    return filled


@kernel
def slice_characters(text, spans, rows, lead, lowest, highest, powers, shift, cursor, slice_starts, slice_stops, keys):
    """Fill slices with the n-grams of characters within spans; how many.

    Span j is ``text[spans[j] - lead : spans[j + 1]]``. With a lead, spans are words with a space on either side, and
    one that is not longer than n is a term once, itself.
    """
    row, n, span, start, stop = cursor[0], cursor[1], cursor[2], cursor[3], cursor[4]
    filled, nbytes = 0, 0
    while row < len(rows) - 1 and filled < len(keys):
        if span == rows[row + 1]:
            slice_starts[filled] = ROW_END
            filled += 1
            row += 1
            continue
        first, end = spans[span] - lead, spans[span + 1]
        short = False
        if start < 0:
            start, stop = first, first
            for _ in range(n):
                short |= stop == end
                stop = _after(text, stop, end)
        h = np.uint64(0)
        for p in range(start, stop):
            h = _push(h, text[p])
        done = short and not lead
        while not done and filled < len(keys):
            slice_starts[filled] = start
            slice_stops[filled] = stop
            keys[filled] = _mix(_push(h, SPACE)) >> shift
            nbytes += stop - start
            filled += 1
            done = stop == end
            if not done:
                following = _after(text, start, end)
                for p in range(start, following):
                    h -= (np.uint64(text[p]) + ONE) * powers[stop - p - 1]
                start = following
                following = _after(text, stop, end)
                for p in range(stop, following):
                    h = _push(h, text[p])
                stop = following
        if done:
            whole = short or (lead and start == first)
            n += 1
            if n > highest or whole:
                n, span = lowest, span + 1
            start = -1
    cursor[0], cursor[1], cursor[2], cursor[3], cursor[4], cursor[-1] = row, n, span, start, stop, nbytes
    return filled


@kernel_part
def _after(text, p, end):
    """Where the next character starts; the end stays where it is."""
    if p < end:
        p += 1
        while p < end and text[p] & 0xC0 == 0x80:
            p += 1
    return p
