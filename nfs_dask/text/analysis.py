"""From texts to the stretches of bytes that are their terms: by compiled code, by Python where only that can tell."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.arrays.kernels import read_only
from nfs_dask.errors import InputError
from nfs_dask.text import text_kernels as kernels
from nfs_dask.text.backtracking import may_take_for_ever
from nfs_dask.text.settings import MOST_NGRAM, TextSettings, Tokenizer
from nfs_dask.text.stemming import Stems
from nfs_dask.text.strings import Strings, grown
from nfs_dask.text.unicode import SOLID, WORD, fold_text, folding, kinds

N_POWERS = 4 * MOST_NGRAM + 1  # of the base of the hash: enough for any n-gram of characters

# A run of word characters ends where a boundary is, so that \b adds nothing; white space has no such mark.
_RUNS = re.compile(r"(?:\(\?u\))?(?:(?:\\b)?(?P<word>(?:\\w)+\+)(?:\\b)?|(?P<solid>(?:\\S)+\+))")


def runs_of(pattern: str) -> tuple[int, int] | None:
    r"""The kind of characters whose maximal runs a pattern finds, and their least number; None for other patterns.

    >>> runs_of(r"(?u)\b\w\w+\b") == (WORD, 2)
    True
    >>> runs_of(r"[a-z]+") is None
    True
    """
    found = _RUNS.fullmatch(pattern)
    if found is None:
        return None
    return (WORD if found["word"] else SOLID), len(found["word"] or found["solid"]) // 2


def frozen(array: Array, kind: Any = np.uint8) -> Array:
    """A view that cannot be written, so that each kernel is compiled for one type of its input only."""
    view: Array = read_only(np.ascontiguousarray(array, kind))
    return view


def spared(text: Array) -> Array:
    """A copy with room after it for reading eight bytes at a time."""
    return np.concatenate([text, np.zeros(kernels.SPARE, np.uint8)])


Tokens: TypeAlias = tuple[Array, Array, Array, Array]  # text, starts, running hashes, rows: see `kernels.split_words`


@dataclass(frozen=True, slots=True)
class Slices:
    """Terms, in order, as stretches of a text: slice j is ``text[starts[j] : stops[j]]``, or the end of a row."""

    text: Array  # uint8, with `kernels.SPARE` bytes after the last slice
    starts: Array  # (n or more,) int64, `kernels.ROW_END` at the end of a row
    stops: Array  # (n or more,) int64
    keys: Array  # (n or more,) uint64, hashes
    n: int
    nbytes: int  # of all slices together


class Analysis:
    """Folds and splits texts as the settings say. Holds buffers, which it uses again."""

    def __init__(self, settings: TextSettings, tokenizer: Tokenizer | None, *, hash_bits: int, n_slices: int) -> None:
        self._settings = settings
        self._make_tokens = _token_function(settings, tokenizer)
        self._shift = np.uint64(64 - hash_bits)
        self._powers = np.empty(N_POWERS, np.uint64)
        kernels.fill_powers(self._powers)
        self._stops = _stop_table(settings)
        self._stems = None if settings.stem is None else Stems(settings.stem, self._powers)
        self._slices = (np.empty(n_slices, np.int64), np.empty(n_slices, np.int64), np.empty(n_slices, np.uint64))
        self._buffers: dict[str, Array] = {}

    @property
    def nbytes(self) -> int:
        """Of all arrays held. Tables of characters, one set for all of a process, are not among them."""
        arrays = (*self._slices, *self._buffers.values(), *self._stops, self._powers)
        return sum(array.nbytes for array in arrays) + (0 if self._stems is None else self._stems.nbytes)

    def clear(self) -> None:
        """Give the buffers up, and forget stems."""
        self._buffers.clear()
        if self._stems is not None:
            self._stems.clear()

    # Folding

    def fold(self, text: Array, offsets: Array) -> Strings:
        """Lower-case and without accents, if the settings say so."""
        settings = self._settings
        nbytes = int(offsets[-1] - offsets[0])
        foreign = nbytes > 0 and bool(text[offsets[0] : offsets[-1]].max() >= 0x80)
        if not (settings.lowercase or (settings.strip_accents and foreign)):
            return Strings(offsets, text)
        table = folding(settings.lowercase, settings.strip_accents)
        out = self._buffer("folded", nbytes + (nbytes // 8 + table.widest if foreign else 0))
        out_offsets = np.zeros(len(offsets), np.int64)
        first = 0
        while True:
            first, why = kernels.fold_texts(
                text, offsets, first, settings.lowercase,
                table.codes, table.offsets, table.pieces, table.widest, out, out_offsets,
            )  # fmt: skip
            if why == kernels.DONE:
                return Strings(frozen(out_offsets, np.int64), frozen(out))
            if why == kernels.CONTEXT:
                out = self._fold_in_python(text[offsets[first] : offsets[first + 1]], out, out_offsets, first)
                first += 1
            else:
                out = self._buffers["folded"] = grown(out, len(out) + 1)

    def _fold_in_python(self, text: Array, out: Array, out_offsets: Array, i: int) -> Array:
        folded = fold_text(text.tobytes().decode(), self._settings.lowercase, self._settings.strip_accents).encode()
        start = int(out_offsets[i])
        out_offsets[i + 1] = start + len(folded)
        out = self._buffers["folded"] = grown(out, start + len(folded))
        out[start : start + len(folded)] = np.frombuffer(folded, np.uint8)
        return out

    # Splitting

    def slices(self, texts: Strings) -> Iterator[Slices]:
        """The terms of folded texts. Each lot is good until the next one is asked for."""
        if self._settings.analyzer == "char":
            return self._slices_of_texts(texts)
        if self._settings.analyzer == "char_wb":
            return self._slices_of_words(texts)
        if self._make_tokens is not None:
            return self._slices_of_tokens(*self._take_tokens(texts, self._make_tokens))
        runs = runs_of(self._settings.token_pattern)
        assert runs is not None
        return self._slices_of_tokens(*self._split(texts, *runs))

    def _slices_of_tokens(self, text: Array, starts: Array, running: Array, rows: Array) -> Iterator[Slices]:
        lowest, highest = self._settings.ngrams
        if self._settings.stop_words:
            kernels.drop_words(*self._stops, self._powers, text, starts, running, rows)
        if self._stems is not None:
            text = self._stemmed(self._stems, text, starts, running, int(rows[-1]))
        cursor = np.array([0, lowest, 0, 0])
        while n := kernels.slice_words(
            starts, running, rows, lowest, highest, self._powers, self._shift, cursor, *self._slices
        ):
            yield Slices(text, *self._slices, n, int(cursor[-1]))

    def _stemmed(self, stems: Stems, text: Array, starts: Array, running: Array, n: int) -> Array:
        """The text of the stems of all tokens, whose places and hashes take those of the tokens."""
        found, nbytes = stems.find(text, starts, running, n)
        out = self._buffer("stems", nbytes + 1 + kernels.SPARE)
        stems.put(found, out, starts, running)
        return out

    def _slices_of_texts(self, texts: Strings) -> Iterator[Slices]:
        out = self._buffer("joined", int(texts.offsets[-1] - texts.offsets[0]) + kernels.SPARE)
        spans = np.empty(len(texts) + 1, np.int64)
        kernels.join_spaces(texts.text, texts.offsets, kinds(), SOLID, out, spans)
        return self._slices_of_characters(out, spans, np.arange(len(spans)), 0)

    def _slices_of_words(self, texts: Strings) -> Iterator[Slices]:
        text, starts, _, rows = self._split(texts, SOLID, 1)
        return self._slices_of_characters(text, starts, rows, 1)

    def _slices_of_characters(self, text: Array, spans: Array, rows: Array, lead: int) -> Iterator[Slices]:
        lowest, highest = self._settings.ngrams
        cursor = np.array([0, lowest, 0, -1, -1, 0])
        while n := kernels.slice_characters(
            text, spans, rows, lead, lowest, highest, self._powers, self._shift, cursor, *self._slices
        ):
            yield Slices(text, *self._slices, n, int(cursor[-1]))

    def _split(self, texts: Strings, kind: int, shortest: int) -> Tokens:
        nbytes = int(texts.offsets[-1] - texts.offsets[0])
        out = self._buffer("tokens", nbytes + len(texts) + 1 + kernels.SPARE)
        rows = np.empty(len(texts) + 1, np.int64)
        room = nbytes // 4 + 2
        while True:
            starts, running = self._buffer("starts", room, np.int64), self._buffer("running", room, np.uint64)
            if kernels.split_words(texts.text, texts.offsets, kinds(), kind, shortest, out, starts, running, rows):
                return out, starts, running, rows
            room = 2 * len(starts)

    def _take_tokens(self, texts: Strings, make: Callable[[str], Iterable[Any]]) -> Tokens:
        tokens, sizes = tokens_of(texts, make)
        out = self._buffer("tokens", len(tokens.text) + len(tokens) + 1 + kernels.SPARE)
        starts = self._buffer("starts", len(tokens) + 1, np.int64)
        running = self._buffer("running", len(tokens) + 1, np.uint64)
        rows = np.empty(len(texts) + 1, np.int64)
        kernels.take_tokens(frozen(tokens.text), tokens.offsets, sizes, out, starts, running, rows)
        return out, starts, running, rows

    def _buffer(self, name: str, size: int, kind: Any = np.uint8) -> Array:
        held = self._buffers.get(name)
        if held is None or len(held) < size:
            held = self._buffers[name] = np.empty(size, kind)
        return held


def tokens_of(texts: Strings, make: Callable[[str], Iterable[Any]]) -> tuple[Strings, Array]:
    """The tokens of all texts, one after another, and how many each has."""
    tokens: list[str] = []
    sizes = np.zeros(len(texts), np.int64)
    for i, text in enumerate(texts.to_list()):
        made = make(text)
        if isinstance(made, (str, bytes)) or not isinstance(made, Iterable):
            raise InputError(f"the tokenizer gave {made!r:.80}; let it give a list of strings")
        own = list(made)
        for token in own:
            if not isinstance(token, str):
                raise InputError(f"the tokenizer gave {token!r}, a {type(token).__name__}; let it give strings only")
        tokens += own
        sizes[i] = len(own)
    try:
        return Strings.of(tokens), sizes
    except UnicodeEncodeError as error:
        raise InputError(f"the tokenizer gave {error.object!r}, which UTF-8 cannot hold; let it give text") from None


def _token_function(settings: TextSettings, tokenizer: Tokenizer | None) -> Callable[[str], Iterable[Any]] | None:
    """What makes tokens in Python; None where compiled code does, or where terms are not made of tokens."""
    if settings.analyzer != "word":
        return None
    if tokenizer is not None:
        return tokenizer
    if settings.tokenizer is not None:
        raise InputError(f"tokens were made by {settings.tokenizer}, which is not at hand; give it as tokenizer=")
    if runs_of(settings.token_pattern):
        return None
    if may_take_for_ever(settings.token_pattern):
        raise InputError(
            f"token_pattern={settings.token_pattern!r} can match the same characters in several ways, which may take "
            "for ever on some texts; write each repetition such that no other one takes its characters, as [a-z]+ in "
            "place of (?:[a-z]+)+, or give tokenizer=re.compile(pattern).findall"
        )
    return re.compile(settings.token_pattern).findall


def _stop_table(settings: TextSettings) -> tuple[Array, Array, Array, Array]:
    """Slots, hashes, offsets and names of the stop words: an empty table where none are left out."""
    words = (settings.stop_words or ()) if settings.analyzer == "word" else ()
    # A word that UTF-8 cannot hold is none that a text has.
    table = Strings.of([word.encode("utf-8", "surrogatepass") for word in words])
    hashes = np.empty(len(words), np.uint64)
    kernels.hash_texts(frozen(table.text), frozen(table.offsets, np.int64), hashes)
    slots = np.zeros(kernels.n_slots(len(words)), np.uint64)
    kernels.fill_slots(slots, hashes, 0, len(words))
    return slots, hashes, table.offsets, spared(table.text)
