"""What this Python knows of each character, as tables that compiled code can read.

Built from the methods of `str` itself, so that the fast route and the slow one cannot disagree. Every table has a place
for each code point; they are made when the first text needs them, and shared by all threads of a process.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.text.settings import Accents

N_CODES = 0x110000
WORD = 1  # bit of a character that \w matches: letters and digits of all scripts, and "_"
SOLID = 2  # bit of a character that \S matches: all but white space
CONTEXTUAL = N_CODES  # in place of a code: what the character becomes depends on its neighbours

_BLOCK = 256  # code points that are looked at together
_NEIGHBOURS = (("a", ""), ("", "a"), ("a", "a"))


@functools.cache
def kinds() -> Array:
    """Bits of each character, (N_CODES,) uint8."""
    everything = np.arange(N_CODES, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")
    table = np.zeros(N_CODES, np.uint8)
    for pattern, bit in ((r"\w+", WORD), (r"\S+", SOLID)):
        for run in re.finditer(pattern, everything):
            table[run.start() : run.end()] |= bit
    table.flags.writeable = False
    return table


@dataclass(frozen=True)
class Folding:
    """What becomes of each character, whatever stands beside it: another one, or some, or none.

    A code of 0 or more is the character in its place, or `CONTEXTUAL`; ``-1 - i`` stands for the UTF-8 bytes
    ``pieces[offsets[i] : offsets[i + 1]]``.
    """

    codes: Array  # (N_CODES,) int32
    offsets: Array  # (n + 1,) int64
    pieces: Array  # (nbytes,) uint8

    @functools.cached_property
    def widest(self) -> int:
        """Most bytes that one character becomes."""
        return max(4, int(np.diff(self.offsets).max(initial=0)))


@functools.cache
def folding(lowercase: bool, accents: Accents | None) -> Folding:
    """The table of `fold_text`."""
    codes = np.arange(N_CODES, dtype=np.int32)
    pieces: dict[str, int] = {}
    for start in range(0, N_CODES, _BLOCK):
        block = "".join(map(chr, range(start, start + _BLOCK)))
        folded = fold_text(block, lowercase, accents)
        if folded == block:
            continue
        for code, character in enumerate(block, start):
            codes[code] = _folded_code(character, lowercase, accents, pieces) if folded else _piece("", pieces)
    encoded = [piece.encode() for piece in pieces]
    offsets = np.concatenate(([0], np.cumsum([len(piece) for piece in encoded], dtype=np.int64)))
    table = Folding(codes, offsets, np.frombuffer(b"".join(encoded) or b"\0", np.uint8))
    for array in (table.codes, table.offsets, table.pieces):
        array.flags.writeable = False
    return table


def fold_text(text: str, lowercase: bool, accents: Accents | None) -> str:
    """Lower-case first, then without accents: scikit-learn's order."""
    if lowercase:
        text = text.lower()
    return text if accents is None or text.isascii() else _STRIPPERS[accents](text)


def _strip_marks(text: str) -> str:
    return "".join([c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c)])


def _strip_all_but_ascii(text: str) -> str:
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")


_STRIPPERS: dict[str, Callable[[str], str]] = {"unicode": _strip_marks, "ascii": _strip_all_but_ascii}


def _folded_code(character: str, lowercase: bool, accents: Accents | None, pieces: dict[str, int]) -> int:
    folded = fold_text(character, lowercase, accents)
    if lowercase and _is_contextual(character):
        return CONTEXTUAL
    return ord(folded) if len(folded) == 1 else _piece(folded, pieces)


def _piece(folded: str, pieces: dict[str, int]) -> int:
    return -1 - pieces.setdefault(folded, len(pieces))


def _is_contextual(character: str) -> bool:
    """Whether lower-casing looks at the neighbours, as it does for the Greek sigma at the end of a word."""
    alone = character.lower()
    return any((before + character + after).lower() != before + alone + after for before, after in _NEIGHBOURS)
