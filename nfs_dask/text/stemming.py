"""Stems of words by Snowball's rules. Compiled code looks a word up; only one that was not met yet is stemmed anew."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.arrays.kernels import read_only
from nfs_dask.errors import InputError
from nfs_dask.text import text_kernels as kernels
from nfs_dask.text.settings import TextSettings
from nfs_dask.text.strings import Strings

MOST_WORDS = 1 << 18  # that are remembered; then all are forgotten, so that memory does not grow with the corpus
MOST_NBYTES = 1 << 24  # of them, and of their stems
CAPACITY = 1024  # words, to begin with

MISSING = "stem= needs PyStemmer, which is not installed; pip install 'nfs-dask[languages]'"


def _stemmer_library() -> Any:
    try:
        import Stemmer
    except ImportError:
        raise InputError(MISSING) from None
    return Stemmer


def stem_function(language: str) -> Callable[[Any], Any]:
    """From a word, as a string or its UTF-8, to its stem of the same kind. For one thread at a time.

    >>> stem_function("english")("running")
    'run'
    """
    library = _stemmer_library()
    if language not in library.algorithms():
        raise InputError(f"stem={language!r}; give one of {', '.join(library.algorithms())}, or None")
    stem: Callable[[Any], Any] = library.Stemmer(language, 0).stemWord
    return stem


def stemmer_version(language: str) -> str:
    """Of the rules that are installed; refused where they do not know the language."""
    stem_function(language)
    return installed_version()


def installed_version() -> str:
    """Of the package: what the library says of itself is the same for releases with different rules."""
    return version("PyStemmer")


def other_version(settings: TextSettings) -> str | None:
    """What to tell where terms were stemmed by other rules than those installed; refused where there are none."""
    if settings.stem is None:
        return None
    here = stemmer_version(settings.stem)
    if here == settings.stem_version:
        return None
    return (
        f"the terms were stemmed by PyStemmer {settings.stem_version}, and PyStemmer {here} is here, which may stem "
        f"some words otherwise; pip install PyStemmer=={settings.stem_version}"
    )


class Stems:
    """Words that were met, with their stems: an open-addressing table as `Tally` has one."""

    def __init__(self, language: str, powers: Array) -> None:
        self._stem = stem_function(language)
        self._powers = powers
        self.clear()

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in (self._slots, self._hashes, *self._words.arrays, *self._stems.arrays))

    def clear(self) -> None:
        """Forget all words."""
        self._n = 0
        self._slots = np.zeros(kernels.n_slots(CAPACITY), np.uint64)
        self._hashes = np.empty(CAPACITY, np.uint64)
        self._words, self._stems = _Pile(), _Pile()

    def find(self, text: Array, starts: Array, running: Array, n: int) -> tuple[Array, int]:
        """Which word of the table each of ``n`` tokens is, and the bytes of their stems with a space after each."""
        found = np.empty(n, np.int64)
        if self._n > MOST_WORDS or self._words.nbytes + self._stems.nbytes > MOST_NBYTES:
            self.clear()
        if self._look_up(text, starts, running, found):
            missing = np.flatnonzero(found < 0)
            edges = zip(starts[missing].tolist(), starts[missing + 1].tolist(), strict=True)
            self._add(list(dict.fromkeys(text[start : stop - 1].tobytes() for start, stop in edges)))
            self._look_up(text, starts, running, found)
        return found, self._stems.nbytes_of(found) + n

    def put(self, found: Array, out: Array, starts: Array, running: Array) -> None:
        """Write the stems in place of tokens, as `kernels.split_words` writes tokens."""
        kernels.put_words(found, self._stems.offsets, self._stems.text, out, starts, running)

    def _look_up(self, text: Array, starts: Array, running: Array, found: Array) -> int:
        """How many tokens are none of the table."""
        table = (self._slots, self._hashes, self._words.offsets, self._words.text)
        missing: int = kernels.find_words(*table, self._powers, text, starts, running, found)
        return missing

    def _add(self, words: list[bytes]) -> None:
        table, n = Strings.of(words), self._n + len(words)
        hashes = np.empty(len(words), np.uint64)
        kernels.hash_texts(read_only(table.text), read_only(table.offsets), hashes)
        self._words.add(table, self._n)
        self._stems.add(Strings.of(self._stem(word) for word in words), self._n)
        self._hashes = _grown(self._hashes, n)
        self._hashes[self._n : n] = hashes
        if kernels.n_slots(n) > len(self._slots):
            self._slots = np.zeros(kernels.n_slots(2 * n), np.uint64)
            self._n = 0
        kernels.fill_slots(self._slots, self._hashes, self._n, n)
        self._n = n


class _Pile:
    """Strings one after another, in arrays that grow."""

    def __init__(self) -> None:
        self.offsets = np.zeros(CAPACITY + 1, np.int64)
        self.text = np.zeros(8 * CAPACITY, np.uint8)
        self.nbytes = 0

    @property
    def arrays(self) -> tuple[Array, Array]:
        return self.offsets, self.text

    def add(self, strings: Strings, n: int) -> None:
        """Put strings on top of the ``n`` that are there."""
        stop = self.nbytes + len(strings.text)
        self.offsets = _grown(self.offsets, n + len(strings) + 1)
        self.text = _grown(self.text, stop + kernels.SPARE)
        self.offsets[n + 1 : n + len(strings) + 1] = strings.offsets[1:] + self.nbytes
        self.text[self.nbytes : stop] = strings.text
        self.nbytes = stop

    def nbytes_of(self, chosen: Array) -> int:
        return int((self.offsets[chosen + 1] - self.offsets[chosen]).sum())


def _grown(array: Array, size: int) -> Array:
    """The same content with room for ``size`` and more, zeros where nothing is."""
    if size <= len(array):
        return array
    larger = np.zeros(max(size, 2 * len(array)), array.dtype)
    larger[: len(array)] = array
    return larger
