"""Where the fields of rows of CSV and of JSON lines are, and what they hold, compiled by numba.

Rows are found up to the first that is not quite regular, which is left to Python's own readers: whatever is found here,
they would have found as well, and whatever is wrong with a row, they say. A span is where a field begins and ends; one
that begins at ``~start`` has something in it that stands for something else, such as doubled quotes.

All of them are in one file, since the cache of compiled code goes by the file of a kernel alone.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from nfs_dask.arrays.compiling import kernel, kernel_part
from nfs_dask.arrays.kernels import trailing_zeros
from nfs_dask.text.text_kernels import HIGH_BITS, LITTLE, load_eight

EACH = np.uint64(0x0101010101010101)
LF, CR, QUOTE, BACKSLASH = 10, 13, ord('"'), ord("\\")
COMMA, COLON, BRACE, BRACKET = ord(","), ord(":"), ord("{"), ord("[")
CLOSE = 2  # from the code of a brace or a bracket to that of its counterpart

DONE, UNFINISHED, IRREGULAR = range(3)  # why no more rows were found

WORDS = tuple(np.frombuffer(word, np.uint8) for word in (b"true", b"false", b"null"))
TEXT, SCALAR = 1, 2  # what a field of JSON has to be: there, and a string; or nothing that holds other values
DEEPEST = 60  # values within values, each a bit of a number
LONGEST_NUMBER = 600  # characters; Python refuses whole numbers of more than some digits, never of less than 640


def _copy_bytes(_typing: Any, out: Any, _p: Any, text: Any, _start: Any, _n: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        arrays = [context.make_array(signature.args[i])(context, builder, arguments[i]).data for i in (0, 2)]
        to, source = (builder.gep(data, [arguments[i]]) for data, i in zip(arrays, (1, 3), strict=True))
        cgutils.raw_memcpy(builder, to, source, arguments[4], 1)
        return context.get_dummy_value()

    return types.void(out, types.int64, text, types.int64, types.int64), generate


# For loops: n bytes of a text from ``start`` on to ``out[p]`` and what follows, as C copies them.
copy_bytes: Any = intrinsic(_copy_bytes)


# Eight bytes at once, of which the first is the lowest: in each that is looked for, the high bit is set. What is set
# after the first of them may be wrong.


@numba.njit(nogil=True, inline="always")
def _alike(eight, byte):
    """Those that are the same as a byte."""
    differ = eight ^ (EACH * np.uint64(byte))
    return (differ - EACH) & ~differ & HIGH_BITS


@numba.njit(nogil=True, inline="always")
def _below(eight, byte):
    """Those that are less than a byte of no more than 128."""
    return (eight - EACH * np.uint64(byte)) & ~eight & HIGH_BITS


@numba.njit(nogil=True, inline="always")
def _first_of(found):
    """How many bytes come before the first."""
    return np.int64(trailing_zeros(found) >> np.uint64(3))


# CSV


@kernel
def find_rows(text, at, complete, delimiter, slots, longest, spans, lines):
    """The fields of rows from ``at`` on, as csv.reader reads them strictly.

    ``slots[j]`` says which span of a row field j has, -1: none; a row that has not as many fields as there are slots
    is irregular. ``lines`` gets the line ends before each row. ``complete``: nothing follows the text.

    Returns
    -------
    rows, position and line ends where the next begins, and why no more were found
    """
    rows, passed = 0, np.int64(0)
    while at < len(text) and rows < len(spans):
        if text[at] == LF or text[at] == CR:
            at, passed = _after_line_end(text, at), passed + 1
            continue
        begin, before, field, more = at, passed, 0, True
        while more:
            start, marked = at, False
            if at < len(text) and text[at] == QUOTE:
                start += 1
                at, passed, marked = _end_of_quoted(text, start, passed)
                if at == len(text):
                    return rows, begin, before, IRREGULAR if complete else UNFINISHED
                stop = at
                at += 1
            else:
                at = end_of_field(text, at, delimiter)
                stop = at
            if field == len(slots) or stop - start > longest:
                return rows, begin, before, IRREGULAR
            if slots[field] >= 0:
                spans[rows, slots[field], 0] = ~start if marked else start
                spans[rows, slots[field], 1] = stop
            field += 1
            more = at < len(text) and text[at] == delimiter
            if more:
                at += 1
            elif at < len(text):
                if text[at] != LF and text[at] != CR:
                    return rows, begin, before, IRREGULAR
                at, passed = _after_line_end(text, at), passed + 1
            elif not complete:
                return rows, begin, before, UNFINISHED
        if field < len(slots):
            return rows, begin, before, IRREGULAR
        lines[rows] = before
        rows += 1
    return rows, at, passed, DONE


@kernel_part
def _after_line_end(text, at):
    return at + 2 if text[at] == CR and at + 1 < len(text) and text[at + 1] == LF else at + 1


@kernel_part
def end_of_field(text, at, last):
    """The next line end, or byte that fields end with, or the end of the text."""
    while LITTLE and at + 8 <= len(text):
        eight = load_eight(text, at)
        ends = _alike(eight, last) | _alike(eight, LF) | _alike(eight, CR)
        if ends:
            return at + _first_of(ends)
        at += 8
    while at < len(text) and text[at] != last and text[at] != LF and text[at] != CR:
        at += 1
    return at


@kernel_part
def _end_of_quoted(text, at, passed):
    """The quote that ends a field, or the end of the text; line ends up to there; and whether quotes are doubled."""
    doubled = False
    at = end_of_field(text, at, QUOTE)
    while at < len(text):
        c = text[at]
        if c == QUOTE:
            if at + 1 == len(text) or text[at + 1] != QUOTE:
                return at, passed, doubled
            doubled = True
            at += 1
        elif c == LF or at + 1 == len(text) or text[at + 1] != LF:
            passed += 1
        at = end_of_field(text, at + 1, QUOTE)
    return at, passed, doubled


@kernel
def copy_fields(text, spans, slot, out, offsets):
    """The fields of a slot one after another, doubled quotes as one."""
    p = np.int64(0)
    for i in range(len(offsets) - 1):
        start, stop = spans[i, slot, 0], spans[i, slot, 1]
        if start >= 0:
            p = _copy(text, start, stop, out, p)
        else:
            q = ~start
            while q < stop:
                out[p] = text[q]
                p += 1
                q += 2 if text[q] == QUOTE else 1
        offsets[i + 1] = p


@kernel_part
def _copy(text, start, stop, out, p):
    copy_bytes(out, p, text, start, stop - start)
    return p + stop - start


# JSON


@kernel
def find_objects(text, at, names, name_offsets, roles, spans, lines):
    """The fields of objects from ``at`` on, one on each line, as json.loads reads them; the text is valid UTF-8.

    Field j has the name ``names[name_offsets[j] : name_offsets[j + 1]]``, and is what ``roles[j]`` says. A span holds
    all of a value as it is written; that of a field that is not there is empty. ``lines`` gets the lines before each.

    Returns
    -------
    objects, position and number of the line where the next is, and why no more were found
    """
    rows, passed = 0, 0
    while at < len(text) and rows < len(spans):
        first = _after_spaces(text, at)
        if first == len(text) or text[first] == LF:
            at, passed = first + 1, passed + 1
            continue
        end = _after_object(text, first, names, name_offsets, roles, spans[rows])
        end = _after_spaces(text, end) if end >= 0 else end
        if end < 0 or (end < len(text) and text[end] != LF):
            return rows, at, passed, IRREGULAR
        lines[rows] = passed
        at, passed = end + 1, passed + 1
        rows += 1
    return rows, min(at, len(text)), passed, DONE


@kernel_part
def _after_object(text, at, names, name_offsets, roles, spans):
    """The position after an object whose fields are as they have to be; -1 where that is not sure."""
    if text[at] != BRACE:
        return -1
    spans[:] = 0
    at = _after_spaces(text, at + 1)
    while at < len(text) and text[at] == QUOTE:
        key = at + 1
        at, marked, _ = _after_string(text, at)
        if at < 0 or marked:
            return -1
        slot = _slot(text, key, at - 1, names, name_offsets)
        at = _after_colon(text, at)
        if at < 0:
            return -1
        start = at
        at, marked, sound = _after_value(text, at)
        if at < 0:
            return -1
        if slot >= 0:
            nested = text[start] == BRACE or text[start] == BRACKET
            no_text = text[start] != QUOTE or not sound
            if spans[slot, 1] or (roles[slot] & SCALAR and nested) or (roles[slot] & TEXT and no_text):
                return -1
            spans[slot, 0] = ~start if marked else start
            spans[slot, 1] = at
        at = _after_spaces(text, at)
        if at == len(text) or text[at] != COMMA:
            break
        at = _after_spaces(text, at + 1)
        if at == len(text) or text[at] != QUOTE:
            return -1
    for slot in range(len(roles)):
        if roles[slot] & TEXT and not spans[slot, 1]:
            return -1
    return at + 1 if at < len(text) and text[at] == BRACE + CLOSE else -1


@kernel_part
def _slot(text, start, stop, names, name_offsets):
    """Which of the names these bytes are; -1: none."""
    for slot in range(len(name_offsets) - 1):
        first, length = name_offsets[slot], name_offsets[slot + 1] - name_offsets[slot]
        if stop - start == length:
            q = 0
            while q < length and text[start + q] == names[first + q]:
                q += 1
            if q == length:
                return slot
    return -1


@kernel_part
def _after_spaces(text, at):
    """White space of JSON, within a line."""
    while at < len(text) and (text[at] == 32 or text[at] == 9 or text[at] == CR):
        at += 1
    return at


@kernel_part
def _after_colon(text, at):
    at = _after_spaces(text, at)
    return _after_spaces(text, at + 1) if at < len(text) and text[at] == COLON else -1


@kernel_part
def _after_value(text, at):
    """The position after any value, or -1; and of a string, whether it has escapes, and is sure to be whole characters.

    ``kinds`` has a bit for each value that this one is in: 1 for an object.
    """
    depth, kinds, marked, sound = 0, np.uint64(0), False, True
    while at < len(text):
        c = text[at]
        if c == QUOTE:
            at, marked, sound = _after_string(text, at)
        elif c in (BRACE, BRACKET):
            if depth == DEEPEST:
                return -1, False, False
            depth += 1
            kinds = (kinds << np.uint64(1)) | np.uint64(c == BRACE)
            at = _after_spaces(text, at + 1)
            if at == len(text) or text[at] != c + CLOSE:
                at = _after_key(text, at) if c == BRACE else at
                if at < 0:
                    return -1, False, False
                continue
            at, depth, kinds = at + 1, depth - 1, kinds >> np.uint64(1)
        else:
            at = _after_plain(text, at)
        if at < 0:
            return -1, False, False
        again = False
        while depth and not again:
            at = _after_spaces(text, at)
            if at == len(text):
                return -1, False, False
            inside = kinds & np.uint64(1)
            if text[at] == COMMA:
                at = _after_spaces(text, at + 1)
                at = _after_key(text, at) if inside else at
                again = True
            elif text[at] == (BRACE if inside else BRACKET) + CLOSE:
                at, depth, kinds = at + 1, depth - 1, kinds >> np.uint64(1)
            else:
                return -1, False, False
            if at < 0:
                return -1, False, False
        if not depth:
            return at, marked, sound
    return -1, False, False


@kernel_part
def _after_key(text, at):
    """The position of the value that a key is before."""
    if at == len(text) or text[at] != QUOTE:
        return -1
    at = _after_string(text, at)[0]
    return _after_colon(text, at) if at >= 0 else -1


@kernel_part
def _after_string(text, at):
    """The position after a string, or -1; whether it has escapes; whether no escape is half of a character alone."""
    marked, sound = False, True
    at = end_of_plain(text, at + 1)
    while at < len(text) and text[at] == BACKSLASH:
        marked = True
        at += 1
        if at == len(text):
            return -1, False, False
        c = text[at]
        at += 1
        if c == ord("u"):
            code = _hexadecimal(text, at)
            if code < 0:
                return -1, False, False
            at += 4
            if 0xD800 <= code < 0xDC00 and _follows(text, at):
                at += 6
            elif 0xD800 <= code < 0xE000:
                sound = False
        elif not _is_escape(c):
            return -1, False, False
        at = end_of_plain(text, at)
    return (at + 1, marked, sound) if at < len(text) and text[at] == QUOTE else (-1, False, False)


@kernel_part
def end_of_plain(text, at):
    """The next quote, backslash or control character, or the end of the text."""
    while LITTLE and at + 8 <= len(text):
        eight = load_eight(text, at)
        ends = _below(eight, 32) | _alike(eight, QUOTE) | _alike(eight, BACKSLASH)
        if ends:
            return at + _first_of(ends)
        at += 8
    while at < len(text) and text[at] >= 32 and text[at] != QUOTE and text[at] != BACKSLASH:
        at += 1
    return at


@kernel_part
def _is_escape(c):
    return c in (QUOTE, BACKSLASH, ord("/")) or _control(c) > 0


@kernel_part
def _control(c):
    """The control character that a letter after a backslash stands for; 0: none."""
    if c == ord("n"):
        return 10
    if c == ord("t"):
        return 9
    if c == ord("r"):
        return 13
    if c == ord("b"):
        return 8
    return 12 if c == ord("f") else 0


@kernel_part
def _follows(text, at):
    """Whether the escaped second half of a character is here."""
    if at + 6 > len(text) or text[at] != BACKSLASH or text[at + 1] != ord("u"):
        return False
    return 0xDC00 <= _hexadecimal(text, at + 2) < 0xE000


@kernel_part
def _hexadecimal(text, at):
    """The number of four digits; -1: they are none."""
    if at + 4 > len(text):
        return -1
    code = 0
    for q in range(at, at + 4):
        c = text[q]
        small = c | 32
        if 48 <= c < 58:
            code = code * 16 + c - 48
        elif 97 <= small < 103:
            code = code * 16 + small - 87
        else:
            return -1
    return code


@kernel_part
def _after_plain(text, at):
    """The position after true, false, null or a number; -1: none of these."""
    for word in WORDS:
        q = 0
        while q < len(word) and at + q < len(text) and text[at + q] == word[q]:
            q += 1
        if q == len(word):
            return at + q
    start = at
    at += text[at] == ord("-")
    if at < len(text) and text[at] == ord("0"):
        at += 1
    else:
        at = _after_digits(text, at)
    if at >= 0 and at < len(text) and text[at] == ord("."):
        at = _after_digits(text, at + 1)
    if at >= 0 and at < len(text) and text[at] | 32 == ord("e"):
        at += 1
        at += at < len(text) and (text[at] == ord("+") or text[at] == ord("-"))
        at = _after_digits(text, at)
    return at if at - start <= LONGEST_NUMBER else -1


@kernel_part
def _after_digits(text, at):
    """The position after one digit or more; -1: there is none."""
    start = at
    while at < len(text) and 48 <= text[at] < 58:
        at += 1
    return at if at > start else -1


@kernel
def copy_values(text, spans, slot, out, offsets):
    """The values of a slot one after another, as they are written."""
    p = 0
    for i in range(len(offsets) - 1):
        start = spans[i, slot, 0]
        p = _copy(text, ~start if start < 0 else start, spans[i, slot, 1], out, p)
        offsets[i + 1] = p


@kernel
def copy_strings(text, spans, slot, out, offsets):
    """The strings that the values of a slot stand for, in UTF-8."""
    p = 0
    for i in range(len(offsets) - 1):
        start, stop = spans[i, slot, 0], spans[i, slot, 1] - 1
        if start >= 0:
            p = _copy(text, start + 1, stop, out, p)
            offsets[i + 1] = p
            continue
        q = ~start + 1
        while q < stop:
            c = text[q]
            q += 1
            if c != BACKSLASH:
                out[p] = c
                p += 1
                continue
            c = text[q]
            q += 1
            if c != ord("u"):
                control = _control(c)
                out[p] = control if control else c
                p += 1
                continue
            code = _hexadecimal(text, q)
            q += 4
            if 0xD800 <= code < 0xDC00:
                code = 0x10000 + ((code - 0xD800) << 10) + _hexadecimal(text, q + 2) - 0xDC00
                q += 6
            p = _encode(code, out, p)
        offsets[i + 1] = p


@kernel_part
def _encode(code, out, p):
    """Write a code point as UTF-8; the position after it."""
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


# Values that repeat


@kernel
def number_values(text, offsets, table, firsts, codes):
    """Number distinct values in the order of appearance, with the first place of each; how many.

    ``table`` has a power of two of places, more than there are values, all -1.
    """
    distinct, mask = 0, len(table) - 1
    for i in range(len(codes)):
        start, length = offsets[i], offsets[i + 1] - offsets[i]
        h: Any = np.uint64(14695981039346656037)
        for q in range(start, start + length):
            h = (h ^ np.uint64(text[q])) * np.uint64(1099511628211)
        place: Any = np.int64((h ^ (h >> np.uint64(32))) & np.uint64(mask))
        while table[place] >= 0:
            first = offsets[firsts[table[place]]]
            q = 0
            if offsets[firsts[table[place]] + 1] - first == length:
                while q < length and text[first + q] == text[start + q]:
                    q += 1
                if q == length:
                    break
            place = (place + 1) & mask
        if table[place] < 0:
            table[place] = distinct
            firsts[distinct] = i
            distinct += 1
        codes[i] = table[place]
    return distinct
