"""Where the rows of a large CSV file begin, which only a scan from the start of the file can tell.

That scan is made of tasks: each goes through its piece from every state that it may begin in, and where one ends tells
in which of them the next began.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from nfs_dask.arrays.compiling import kernel
from nfs_dask.documents.decoding import BOM
from nfs_dask.documents.document_source import BATCH_NBYTES
from nfs_dask.documents.field_kernels import end_of_field
from nfs_dask.files.data_files import open_binary

QUOTE = ord('"')
LOOK_NBYTES = 1 << 16  # gone through at once in search of rows


@dataclass(frozen=True, slots=True)
class RowLook:
    """Bytes of a file in which the first row that begins is looked for."""

    path: str
    start: int
    stop: int | None  # None: the end of the file
    delimiter: str


@dataclass(frozen=True, slots=True)
class RowSeen:
    """What there is in some bytes, for whoever comes to them in a state."""

    start: int  # where the first row begins; -1: nowhere in them
    before: int  # line ends before it, or all of them
    lines: int  # line ends
    end: int  # the state after them


def row_looks(path: str, targets: list[int], delimiter: str) -> Iterator[RowLook]:
    for start, stop in pairwise([0, *targets, None]):
        assert start is not None
        yield RowLook(path, start, stop, delimiter)


def starts(seen: Iterable[tuple[RowLook, list[RowSeen]]]) -> Iterator[tuple[int, int]]:
    """Where rows begin, by what was seen in one piece of a file after another."""
    state, lines = FRESH, 0
    for look, states in seen:
        found = states[state]
        if look.start and found.start >= 0:
            yield found.start, lines + found.before + 1
        state, lines = found.end, lines + found.lines


def look_for_rows(look: RowLook) -> list[RowSeen]:
    """What is seen from each state in which the bytes may begin.

    Soon most of them are the same: those within quotes, and the others. From there on, one is looked at for all.
    """
    delimiter = ord(look.delimiter)
    with open_binary(look.path) as file:
        file.seek(max(0, look.start - 1))
        previous = file.read(1)[0] if look.start else 0
        states = [np.array([state % FRESH, previous, 0, state < FRESH], np.int64) for state in range(FRESH + 1)]
        firsts = [(-1, 0)] * len(states)
        leaders = list(range(len(states)))  # the state that has become the same as each; a leader leads itself
        position, step = look.start, min(BATCH_NBYTES, LOOK_NBYTES)
        while chunk := file.read(step if look.stop is None else min(step, look.stop - position)):
            text = np.frombuffer(chunk, np.uint8)
            skipped = len(BOM) if not position and chunk.startswith(BOM) else 0
            alike: dict[tuple[int, int, bool], int] = {}
            for number, state in enumerate(states):
                if leaders[number] != number:
                    continue
                at = skipped
                if firsts[number][0] < 0 and (at := _next_row(text, at, 0, delimiter, state)) >= 0:
                    firsts[number] = (position + at, int(state[2]))
                if at >= 0:
                    _next_row(text, at, len(text), delimiter, state)
                leaders[number] = alike.setdefault((state[0], state[3], firsts[number][0] < 0), number)
            position += len(chunk)
    seen: list[RowSeen] = []
    for number, leader in enumerate(leaders):  # leaders come before those they lead
        state, (start, before) = states[number], firsts[number]
        if leader == number:
            seen.append(RowSeen(start, before, int(state[2]), int(state[0]) if state[3] else FRESH))
        else:
            seen.append(seen[leader] if start < 0 else replace(seen[leader], start=start, before=before))
    return seen


START, FIELD, QUOTED, CLOSING, BROKEN = range(5)  # what the next byte belongs to, as csv.reader sees it
FRESH = 5  # as at the start, and nothing but line ends has been seen of the file


@kernel
def _next_row(text, at, target, delimiter, state):
    """Position, from ``at`` on and no less than ``target``, where a row begins; -1: not in this text.

    ``state`` has where the parser is, the byte before, the line ends so far, and whether a row was begun.
    """
    mode, previous, lines, begun = state[0], state[1], state[2], state[3]
    i = at - 1
    while i + 1 < len(text):
        i += 1
        byte = text[i]
        if mode in (FIELD, QUOTED) and previous not in (10, 13):
            last = QUOTE if mode == QUOTED else delimiter
            end = min(end_of_field(text, i, last), len(text) - 1)
            if end > i:
                i, previous, byte = end, text[end - 1], text[end]
        if previous == 10 or (previous == 13 and byte != 10):
            lines += 1
            if mode == START and previous == 10 and begun and i >= target:
                state[0], state[1], state[2], state[3] = mode, 0, lines, begun
                return i
        if byte == 10 or byte == 13:
            if mode != QUOTED:
                mode = START
        else:
            begun = 1
            if mode == QUOTED:
                if byte == QUOTE:
                    mode = CLOSING
            elif mode == CLOSING and byte == QUOTE:
                mode = QUOTED
            elif mode == CLOSING and byte != delimiter:
                mode = BROKEN
            elif mode == START and byte == QUOTE:
                mode = QUOTED
            elif mode != BROKEN:
                mode = START if byte == delimiter else FIELD
        previous = byte
    state[0], state[1], state[2], state[3] = mode, previous, lines, begun
    return -1
